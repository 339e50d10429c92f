-- What store and facts.jsonl last agreed on, per fact: the ancestor of the three-way merge.
-- present = 0: the line was taken out of the file by somebody; the fact stays, unwritten.
CREATE TABLE IF NOT EXISTS mirror_lines (
  fact INTEGER PRIMARY KEY REFERENCES facts(id) ON DELETE CASCADE,
  line TEXT NOT NULL,
  present INTEGER NOT NULL DEFAULT 1
) STRICT;
