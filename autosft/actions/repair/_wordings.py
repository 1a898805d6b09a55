"""Other ways to word an instruction: by requirement, and frames that fit any sentence."""

from __future__ import annotations

FRAMES = (
    "Please note: {instruction}",
    "Keep in mind: {instruction}",
    "One condition: {instruction}",
    "Important: {instruction}",
)

WORDINGS: dict[str, tuple[str, ...]] = {
    "lab:lowercase": (
        "Reply in lowercase only.",
        "Every letter of the reply must be lowercase.",
        "Small letters only, please.",
    ),
    "lab:uppercase": (
        "Reply in capitals only.",
        "Every letter of the reply must be a capital.",
        "All caps, please.",
    ),
    "change_case:english_lowercase": (
        "Reply in English, in lowercase only.",
        "English, and small letters only, please.",
    ),
    "change_case:english_capital": ("Reply in English, in capitals only.", "English, and all caps, please."),
    "punctuation:no_comma": (
        "Leave out all commas.",
        "The reply may not contain a comma.",
        "No commas, please.",
    ),
    "startend:quotation": (
        "Enclose the reply in double quotation marks.",
        "Start and end the reply with a double quote.",
    ),
    "lab:exact_words": (
        "The reply must be {n} words long.",
        "Use {n} words, no more and no fewer.",
        "Reply with {n} words.",
    ),
    "lab:exact_sentences": (
        "The reply must be {n} sentences long.",
        "Reply with {n} sentences, no more and no fewer.",
    ),
    "detectable_format:number_bullet_lists": (
        "Reply with a list of {num_bullets} bullets.",
        "Put the reply into {num_bullets} bullet points, each starting with *.",
    ),
    "keywords:existence": ("The reply must contain: {keywords}.", "Work in the following: {keywords}."),
    "keywords:forbidden_words": (
        "The reply may not contain: {forbidden_words}.",
        "Leave out: {forbidden_words}.",
    ),
    "startend:end_checker": ("Close with these words: {end_phrase}.", "Let the reply end in: {end_phrase}."),
    "lab:start_word": ('Open with the word "{word}".', 'The reply starts with "{word}".'),
    "combination:two_responses": (
        "Reply twice, with ****** in between.",
        "Two different replies, please, with ****** in the middle.",
    ),
    "combination:repeat_prompt": (
        "Say the request again first, unchanged, and then reply.",
        "Start by copying the request exactly.",
    ),
    "detectable_format:json_format": ("Reply with a JSON object.", "Format the reply as JSON."),
    "detectable_format:title": (
        "Begin with a title in double angle brackets, like <<this>>.",
        "The reply needs a <<title>>.",
    ),
    "detectable_content:postscript": (
        "Close with a postscript that begins with {postscript_marker}",
        "Add a note at the end that begins with {postscript_marker}",
    ),
    "detectable_content:number_placeholders": (
        "Leave {num_placeholders} or more blanks in square brackets.",
        "The reply needs at least {num_placeholders} slots such as [name].",
    ),
}
