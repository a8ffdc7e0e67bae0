"""Finding chats by words of their titles and messages.

Words are those of SQLite's FTS5, without regard to case or accents; the last letters of each may be
missing, and what stands between quotes is found as it stands. Scripts without spaces have no words
to index: where no word is found, the text is looked for as a whole.
"""

import re
import sqlite3

from app.store.file import StoreFile
from app.store.places import Places
from app.store.records import SearchHit
from app.store.rows import escape_like, writable

MOST_TERMS, MOST_LETTERS = 32, 1000  # what SQLite takes in one statement, and a person types
BEGIN, END = "\x02", "\x03"  # around a find in an excerpt; taken out again
_TERM = re.compile(r'"([^"]+)"|(\S+)')


class Search(Places):
    def search(self, text: str, *, limit: int = 100) -> list[SearchHit]:
        """Titles first, then messages, best first; each chat as often as it has finds."""
        text = writable(text[:MOST_LETTERS]).replace("\0", " ").strip()
        if not text.strip('"'):
            return []
        found: list[SearchHit] = []
        for file in self._files():
            found += _titles(file, text, limit)
            found += _messages(file, text, limit)
        return found[:limit]


def _terms(text: str) -> list[tuple[str, bool]]:
    """(words, whether they stand between quotes)."""
    found = [
        (quoted or word.strip('"'), bool(quoted))
        for quoted, word in _TERM.findall(text)
        if (quoted or word.strip('"')).strip()
    ]
    return found[:MOST_TERMS]


def _titles(file: StoreFile, text: str, limit: int) -> list[SearchHit]:
    terms = [term for term, _ in _terms(text)]
    wanted = " AND ".join("title LIKE ? ESCAPE '\\'" for _ in terms)
    patterns = [f"%{escape_like(term)}%" for term in terms]
    rows = file.read(
        f"SELECT id, title FROM conversation WHERE deleted_at IS NULL AND {wanted}"
        " ORDER BY updated_at DESC LIMIT ?",
        *patterns,
        limit,
    )
    return [
        SearchHit(row["id"], None, row["title"], _places_of(row["title"], terms)) for row in rows
    ]


def _messages(file: StoreFile, text: str, limit: int) -> list[SearchHit]:
    terms = _terms(text)
    query = " ".join(
        '"' + term.replace('"', '""') + '"' + ("" if is_quoted else "*")
        for term, is_quoted in terms
    )
    rows = file.read(_WITH_WORDS, BEGIN, END, query, limit)
    if rows:
        return [_hit_of(row) for row in rows]
    plain = text.strip('"')
    rows = file.read(_WITH_TEXT, plain, f"%{escape_like(plain)}%", limit)
    return [SearchHit(row[0], row[1], row[2], _places_of(row[2], [plain])) for row in rows]


def _hit_of(row: sqlite3.Row) -> SearchHit:
    """The marks become places."""
    excerpt, places = "", []
    for piece in re.split(f"({BEGIN}[^{BEGIN}{END}]*{END})", row[2]):
        if piece.startswith(BEGIN) and piece.endswith(END):
            places.append((len(excerpt), len(piece) - 2))
        excerpt += piece.strip(BEGIN + END)
    return SearchHit(row[0], row[1], excerpt, tuple(places))


def _places_of(text: str, terms: list[str]) -> tuple[tuple[int, int], ...]:
    found = [
        (match.start(), match.end() - match.start())
        for term in terms
        for match in re.finditer(re.escape(term), text, re.IGNORECASE)
    ]
    return tuple(sorted(found))


_WHERE_FOUND = """
JOIN message ON message.id = part.message_id
JOIN conversation ON conversation.id = message.conversation_id
WHERE message.deleted_at IS NULL AND conversation.deleted_at IS NULL
"""
_WITH_WORDS = f"""
SELECT message.conversation_id, message.id, snippet(word, 0, ?, ?, '…', 16)
FROM word JOIN part ON part.id = word.rowid {_WHERE_FOUND} AND word MATCH ? ORDER BY rank LIMIT ?
"""
_WITH_TEXT = f"""
SELECT message.conversation_id, message.id,
substr(part.text, max(1, instr(lower(part.text), lower(?)) - 40), 120)
FROM part {_WHERE_FOUND} AND part.is_searchable AND part.text LIKE ? ESCAPE '\\'
ORDER BY message.id DESC LIMIT ?
"""
