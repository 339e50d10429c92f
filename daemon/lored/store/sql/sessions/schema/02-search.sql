-- The text index of messages. Contentless: the words stand in `messages` (compressed) already.
-- One table, of stems: what plain words add is measured on the texts of the candidates
-- (core/passages.py), at half the disk and half the time of a second table.
CREATE VIRTUAL TABLE IF NOT EXISTS message_stems USING fts5(
  text, ctx, content='', contentless_delete=1,
  tokenize="porter unicode61 remove_diacritics 2");

-- Document frequencies, for leaving out the commonest words of a query on large stores.
CREATE VIRTUAL TABLE IF NOT EXISTS message_stems_df USING fts5vocab('message_stems', 'row');

-- A segment is all vectors of one model; models are never mixed in one score.
-- `centre` (float32) is subtracted before signs are taken.
CREATE TABLE IF NOT EXISTS vector_segments (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dimension INTEGER NOT NULL,
  centre BLOB) STRICT;
CREATE TABLE IF NOT EXISTS message_vectors (
  segment INTEGER NOT NULL,
  message INTEGER NOT NULL,
  vector BLOB NOT NULL,               -- int8, dimension bytes
  PRIMARY KEY (segment, message)) STRICT, WITHOUT ROWID;

-- Packed columns of many messages in one row, so that a million of them are read in a moment:
-- kind 0 is the catalogue (id, session, role, instant), kind N the sign bits of segment N.
-- `change` orders writes: a reader takes what is newer than what it knows.
CREATE TABLE IF NOT EXISTS blocks (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  change INTEGER NOT NULL,
  rows INTEGER NOT NULL,
  lowest INTEGER NOT NULL, highest INTEGER NOT NULL,   -- message ids in it
  data BLOB NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS blocks_by_change ON blocks(kind, change);
CREATE TABLE IF NOT EXISTS block_changes (
  kind INTEGER PRIMARY KEY,
  change INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0    -- raised by removals: read everything again
) STRICT;
