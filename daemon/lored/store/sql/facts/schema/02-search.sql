-- The text index of facts. `fact_texts` holds the words that the index was given, so that FTS5
-- can prove both in step (integrity-check with rank=1) and delete exactly.
CREATE TABLE IF NOT EXISTS fact_texts (
  id INTEGER PRIMARY KEY, text TEXT NOT NULL, ctx TEXT NOT NULL) STRICT;
CREATE VIRTUAL TABLE IF NOT EXISTS fact_stems USING fts5(
  text, ctx, content='fact_texts', content_rowid='id',
  tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE IF NOT EXISTS fact_stems_df USING fts5vocab('fact_stems', 'row');
-- A deleted fact leaves no words in the index pages.
INSERT INTO fact_stems(fact_stems, rank) VALUES('secure-delete', 1);

-- A segment is all vectors of one model; models are never mixed in one score.
-- `centre` (float32) is subtracted before signs are taken. `changes` counts writes, `epoch`
-- removals; `mirrored`/`mirrored_epoch` say up to where the vec0 table has them.
CREATE TABLE IF NOT EXISTS vector_segments (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  dimension INTEGER NOT NULL,
  centre BLOB,
  changes INTEGER NOT NULL DEFAULT 0,
  epoch INTEGER NOT NULL DEFAULT 0,
  mirrored INTEGER NOT NULL DEFAULT 0,
  mirrored_epoch INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE IF NOT EXISTS fact_vectors (
  segment INTEGER NOT NULL,
  fact INTEGER NOT NULL,
  change INTEGER NOT NULL,            -- value of the segment's `changes` at the write
  vector BLOB NOT NULL,               -- int8, dimension bytes
  PRIMARY KEY (segment, fact)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fact_vectors_by_change ON fact_vectors(segment, change);
