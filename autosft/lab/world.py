"""The closed world of the lab: entities, what is true of them, and the words prompts may ask for.

Pure data and arithmetic on it, no heavy imports: the verifier of `lab:fact`, the pool generator, the suite
and the pretraining text all read the same table, so that "right answer" means one thing everywhere.
"""

from __future__ import annotations

import hashlib
from types import MappingProxyType

KINDS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "animal": (
            "fox",
            "dog",
            "cat",
            "owl",
            "bear",
            "frog",
            "horse",
            "mouse",
            "snake",
            "goat",
            "wolf",
            "lion",
        ),
        "fruit": (
            "apple",
            "pear",
            "plum",
            "grape",
            "lemon",
            "peach",
            "cherry",
            "mango",
            "fig",
            "melon",
            "kiwi",
            "lime",
        ),
        "tool": (
            "hammer",
            "saw",
            "rope",
            "knife",
            "shovel",
            "broom",
            "drill",
            "ladder",
            "brush",
            "bucket",
            "lamp",
            "axe",
        ),
        "worker": (
            "baker",
            "farmer",
            "nurse",
            "pilot",
            "sailor",
            "teacher",
            "painter",
            "singer",
            "doctor",
            "miner",
            "guard",
            "clerk",
        ),
        "vehicle": (
            "car",
            "train",
            "boat",
            "bike",
            "plane",
            "truck",
            "bus",
            "ship",
            "cart",
            "sled",
            "van",
            "raft",
        ),
    }
)

VALUES: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "color": ("red", "blue", "green", "brown", "white", "black", "gray", "pink", "purple", "golden"),
        "size": ("small", "big", "tiny", "huge", "short", "tall", "thin", "round"),
        "place": (
            "barn",
            "field",
            "cave",
            "lake",
            "hill",
            "desert",
            "market",
            "kitchen",
            "harbor",
            "school",
            "park",
            "castle",
        ),
        "habit": (
            "rest",
            "swim",
            "sing",
            "jump",
            "climb",
            "hide",
            "dance",
            "work",
            "cook",
            "travel",
            "dig",
            "wait",
        ),
    }
)
"""Attribute -> its possible values. No value is an entity, a kind or an argument word."""

ATTRIBUTES: tuple[str, ...] = tuple(VALUES)
ANY = "any"
"""Attribute of an open request ("Tell me about ..."): any true statement counts, a false one does not."""

# Words that appear only as arguments of requirements (a word to include, a phrase to end with).
_WORDS = """
    amber anchor arrow attic autumn badge basket blanket bottle branch bridge button cabin
    candle canyon carpet cellar circle cloud coffee comet copper corner cotton crown crystal
    dinner dragon engine feather fence finger flame flower forest fountain garden gentle ghost
    giant glass glove hollow honey insect island jacket jungle kettle lantern leather letter
    magic marble meadow metal mirror mountain music needle night ocean orchard paper pebble
    pepper pillow planet pocket potato prince puzzle ribbon river rocket salad shadow secret
    signal silver soldier spider spring square stable station stone storm story street sugar
    summer supper temple thunder tunnel turtle umbrella valley velvet village violet wagon
    whisper window winter wooden yellow zebra
"""
ARGUMENT_WORDS: tuple[str, ...] = tuple(_WORDS.split())
HELD_OUT_WORDS: tuple[str, ...] = ARGUMENT_WORDS[::4]
"""Argument words that only evaluation prompts use."""
TRAINING_WORDS: tuple[str, ...] = tuple(w for w in ARGUMENT_WORDS if w not in set(HELD_OUT_WORDS))

KIND_OF: MappingProxyType[str, str] = MappingProxyType(
    {e: kind for kind, names in KINDS.items() for e in names}
)
ENTITIES: tuple[str, ...] = tuple(KIND_OF)


def draw(options: tuple[str, ...], *key: str) -> str:
    """Pick one option by a hash of the key: the same on every machine and Python version."""
    digest = hashlib.sha256("\x1f".join(key).encode()).digest()
    return options[int.from_bytes(digest[:8], "big") % len(options)]


FACTS: MappingProxyType[str, MappingProxyType[str, str]] = MappingProxyType(
    {
        entity: MappingProxyType(
            {attribute: draw(VALUES[attribute], "fact", entity, attribute) for attribute in ATTRIBUTES}
        )
        for entity in ENTITIES
    }
)
"""Entity -> attribute -> the one true value."""
