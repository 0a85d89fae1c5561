"""HTML that cannot be forgotten to be escaped: text is text until it is said to be HTML."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["Html", "joined", "tag"]

_VOID = frozenset(["br", "img", "input", "link", "meta"])
"""Elements that have no end."""


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """Give an element; whatever in it is no `Html` is escaped.

    Parameters
    ----------
    name
        Of the element.
    children
        `Html`, or anything else, which is shown as text; ``None`` is nothing.
    attributes
        ``class_`` is ``class``, and other underscores are hyphens; those that are ``None`` or false are left
        out, and one that is true stands alone.

    Examples
    --------
    >>> print(tag("p", "a < b", tag("br"), class_="note", data_case='"x"'))
    <p class="note" data-case="&quot;x&quot;">a &lt; b<br></p>
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: Any) -> Html:
    """Put elements and text one after the other.

    Examples
    --------
    >>> print(joined("<", Html("<b>"), None))
    &lt;<b>
    """
    return Html("".join(_shown(child) for child in children if child is not None))


def _shown(child: Any) -> str:
    return child if isinstance(child, Html) else escape(_readable(str(child)))


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-") if key not in _CAMEL else _CAMEL[key]
    return f" {name}" if value is True else f' {name}="{escape(_readable(str(value)))}"'


_CAMEL = {"view_box": "viewBox", "preserve_aspect_ratio": "preserveAspectRatio"}
"""Attributes of SVG that are spelled with capitals."""


def _readable(text: str) -> str:
    """Spell out what no page may hold: control characters, and halves of characters."""
    plain = "".join(each if each >= " " or each in "\n\t" else f"\\x{ord(each):02x}" for each in text)
    return plain.encode("utf-8", "backslashreplace").decode("utf-8")
