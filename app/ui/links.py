"""Addresses that are not what they seem. Knows no Qt."""

from urllib.parse import urlsplit


def doubt(address: str) -> str:
    """Why an address is not opened, as a sentence; empty if nothing speaks against it."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError:
        return "This address can't be read."
    if parts.scheme.lower() == "mailto":
        return ""
    if parts.scheme.lower() not in ("http", "https") or not host:
        return "Only web and mail addresses are opened."
    if "@" in parts.netloc:
        return f"This address hides where it leads: to {host}."
    if "xn--" in host or not host.isascii():
        return "The name of this site has letters that can pass for others."
    return ""
