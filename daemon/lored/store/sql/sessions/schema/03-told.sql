-- What one transcript tells about records of another that may not be read yet.

-- The title of the session that holds a message; gone once that session has it.
CREATE TABLE IF NOT EXISTS titles (
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,           -- messages.key
  title TEXT NOT NULL
) STRICT;

-- What stands in a part of a session (a file with this id at the end of its name) from a byte
-- offset of its uncompressed content on was undone, and goes on in another part.
CREATE TABLE IF NOT EXISTS voids (
  agent TEXT NOT NULL,
  session TEXT NOT NULL,              -- its native id
  part TEXT NOT NULL,
  offset INTEGER NOT NULL,
  applied INTEGER NOT NULL DEFAULT 0, -- 1: the part is read so, or not that far yet
  PRIMARY KEY (agent, session, part)
) STRICT, WITHOUT ROWID;

-- Tokens spent on a message that several sessions hold, and on what followed until the next:
-- in those that repeat it they are counted once only.
CREATE TABLE IF NOT EXISTS spent (
  message INTEGER PRIMARY KEY REFERENCES messages(id) ON DELETE CASCADE,
  tokens TEXT NOT NULL
) STRICT;

-- What a session asked a memory to remember, without secrets. Facts have a store of their own;
-- this is what they are compared with when they say otherwise.
CREATE TABLE IF NOT EXISTS statements (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  message INTEGER,                    -- the one that made the call
  at INTEGER,
  text TEXT NOT NULL,
  entities TEXT NOT NULL,             -- JSON list, as written in the call
  UNIQUE (session, text)
) STRICT;
