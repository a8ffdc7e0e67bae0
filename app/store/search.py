"""Finding chats by words of their titles and messages.

Words are those of SQLite's FTS5, without regard to case or accents; the last letters of each may be
missing, and what stands between quotes is found as it stands. Scripts without spaces have no words
to index: there, and where no word is found, the text is looked for as a whole.
"""

import re
import sqlite3
import unicodedata

from app.store.file import StoreFile
from app.store.places import Places
from app.store.records import SearchHit
from app.store.rows import escape_like, writable

MOST_TERMS, MOST_LETTERS = 32, 1000  # what SQLite takes in one statement, and a person types
BEGIN, END = "\x02", "\x03"  # around a find in an excerpt; taken out again
LEAD = 40  # letters of an excerpt before its find
_TERM = re.compile(r'"([^"]+)"|(\S+)')
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_BREAKS = str.maketrans(dict.fromkeys("\n\r\t\u2028\u2029", " "))


class Search(Places):
    def search(self, text: str, *, limit: int = 100) -> list[SearchHit]:
        """Finds of at most `limit` chats: titles first, the chat used last first, then messages,
        the best first. Of each chat its title and the best of its messages."""
        text = writable(text[:MOST_LETTERS]).replace("\0", " ").strip()
        if not text.strip('"'):
            return []
        found: list[SearchHit] = []
        for file in self._files():
            found += _titles(file, text, limit)
        for file in self._files():
            found += _messages(file, text, limit)
        kept = set(list(dict.fromkeys(hit.conversation_id for hit in found))[:limit])
        return [hit for hit in found if hit.conversation_id in kept]

    def stop_search(self) -> None:
        """Cuts off the search that runs in another thread; that one fails."""
        for file in self._files():
            file.stop_search()


def _terms(text: str) -> list[tuple[str, bool]]:
    """(words, whether they stand between quotes)."""
    found = [
        (quoted or word.strip('"'), bool(quoted))
        for quoted, word in _TERM.findall(text)
        if (quoted or word.strip('"')).strip()
    ]
    return found[:MOST_TERMS]


def _titles(file: StoreFile, text: str, limit: int) -> list[SearchHit]:
    """In Python, because SQLite's LIKE knows the case of ASCII letters only."""
    terms = [folded(term) for term, _ in _terms(text)]
    rows = file.search(
        "SELECT id, title FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC"
    )
    found: list[SearchHit] = []
    for chat_id, title in rows:
        inside = folded(title)
        if all(term in inside for term in terms):
            found.append(SearchHit(chat_id, None, title, places_of(title, terms)))
            if len(found) == limit:
                break
    return found


def _messages(file: StoreFile, text: str, limit: int) -> list[SearchHit]:
    terms = _terms(text)
    if not _WITHOUT_SPACES.search(text):
        query = " ".join(
            '"' + term.replace('"', '""') + '"' + ("" if is_quoted else "*")
            for term, is_quoted in terms
        )
        best = [row["part"] for row in file.search(_WITH_WORDS, query, limit)]
        if best:
            return _excerpts(file, query, best)
        terms = [(text.strip('"'), True)]
    wanted = [term for term, _ in terms]
    statement = _WITH_TEXT.format(" AND ".join([_HAS_TEXT] * len(wanted)))
    patterns = [f"%{escape_like(term)}%" for term in wanted]
    rows = file.search(statement, wanted[0], LEAD, *patterns, limit)
    wanted = [folded(term) for term in wanted]
    return [SearchHit(row[0], row[1], _line(row[2]), places_of(row[2], wanted)) for row in rows]


def _excerpts(file: StoreFile, query: str, parts: list[int]) -> list[SearchHit]:
    """Cut out for the finds that are shown alone: it reads the whole text of each."""
    statement = _EXCERPTS.format(", ".join("?" * len(parts)))
    rows = {row["part"]: row for row in file.search(statement, BEGIN, END, query, *parts)}
    return [_hit_of(rows[part]) for part in parts if part in rows]


def _hit_of(row: sqlite3.Row) -> SearchHit:
    """The marks become places."""
    excerpt, places = "", []
    for piece in re.split(f"({BEGIN}[^{BEGIN}{END}]*{END})", row["excerpt"]):
        if piece.startswith(BEGIN) and piece.endswith(END):
            places.append((len(excerpt), len(piece) - 2))
        excerpt += piece.strip(BEGIN + END)
    return SearchHit(row["chat"], row["message"], _line(excerpt), tuple(places))


def _line(excerpt: str) -> str:
    """One line of as many letters."""
    return excerpt.translate(_BREAKS)


def folded(text: str) -> str:
    """Without case and accents, as the index has it."""
    return "".join(_folded_letters(text)) if not text.isascii() else text.lower()


def _folded_letters(text: str) -> list[str]:
    """What each letter of the text becomes: nothing, one letter or several."""
    return [
        "".join(
            part
            for part in unicodedata.normalize("NFD", letter).casefold()
            if not unicodedata.combining(part)
        )
        for letter in text
    ]


def places_of(text: str, terms: list[str]) -> tuple[tuple[int, int], ...]:
    """(start, length) of the folded terms in the text, in order, none inside another."""
    letters = _folded_letters(text)
    origin = [place for place, letter in enumerate(letters) for _ in letter]
    inside = "".join(letters)
    pattern = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True) if term)
    found = re.finditer(pattern, inside) if pattern else ()
    spans = ((origin[match.start()], origin[match.end() - 1] + 1) for match in found)
    return tuple((start, end - start) for start, end in spans)


_WHERE_FOUND = """
JOIN message ON message.id = part.message_id
JOIN conversation ON conversation.id = message.conversation_id
WHERE message.deleted_at IS NULL AND conversation.deleted_at IS NULL
"""
# The bare columns beside min() and max() are those of the row that has it.
_WITH_WORDS = f"""
SELECT part.id AS part, min(word.rank) AS best FROM word JOIN part ON part.id = word.rowid
{_WHERE_FOUND} AND word MATCH ? GROUP BY conversation.id ORDER BY best LIMIT ?
"""
_EXCERPTS = """
SELECT part.id AS part, message.id AS message, message.conversation_id AS chat,
snippet(word, 0, ?, ?, '…', 16) AS excerpt
FROM word JOIN part ON part.id = word.rowid JOIN message ON message.id = part.message_id
WHERE word MATCH ? AND word.rowid IN ({})
"""
_HAS_TEXT = "part.text LIKE ? ESCAPE '\\'"
_WITH_TEXT = f"""
SELECT message.conversation_id, max(message.id),
substr(part.text, max(1, instr(lower(part.text), lower(?)) - ?), 120)
FROM part {_WHERE_FOUND} AND part.is_searchable AND {{}}
GROUP BY conversation.id ORDER BY max(message.id) DESC LIMIT ?
"""
