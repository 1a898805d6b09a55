"""Code, judged by running it in a sandbox (`taxonomy.sandbox`)."""
