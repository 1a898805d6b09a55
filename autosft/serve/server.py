"""Open the port."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from pathlib import Path

from autosft.errors import ConfigError
from autosft.serve.security import Gate, is_loopback

DEFAULT_PORT = 8765


def run_server(
    root: Path,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    *,
    acts: bool = True,
    names: tuple[str, ...] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Serve until stopped.

    Args:
        root: A campaign's folder, or one that holds campaigns.
        host: Address to listen on; anything but loopback needs a token, which is made and printed.
        port: 0 for a free one.
        acts: Serve pause, approve, invalidate and the like.
        names: Further names the server is known by.
        say: Gets the address.

    Raises:
        CampaignError: There is no campaign.
        ConfigError: The port is taken, or FastAPI is not installed.
    """
    try:
        import uvicorn

        from autosft.serve.app import create_app
    except ImportError:
        raise ConfigError(
            "the live page needs fastapi and uvicorn", where="serve", hint="pip install 'autosft[serve]'"
        ) from None
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    known = {"127.0.0.1", "localhost", "::1", host.lower(), *(name.lower() for name in names)}
    if host in ("0.0.0.0", "::"):
        known |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    app = create_app(root, Gate(frozenset(known), token, acts))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise ConfigError(
            f"cannot listen there ({error})", where=f"{host}:{port}", hint="choose another --port"
        ) from None
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/" + (f"?token={token}" if token else "")
    say(f"{address}   (Ctrl-C ends it)")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
    server.run(sockets=[listener])
