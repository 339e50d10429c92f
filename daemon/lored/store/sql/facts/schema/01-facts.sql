-- Facts of one scope. Instants are microseconds UTC. `id` is internal and never shown; `number`
-- is the N of F<N>: it can change on import (branches of one repository), the uid never does.

CREATE TABLE IF NOT EXISTS facts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  number INTEGER NOT NULL UNIQUE,
  uid TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL,                 -- verbatim; empty once erased
  text_hash INTEGER NOT NULL,         -- keyed hash of the normal form (core.facts.text_hash)
  tags TEXT NOT NULL DEFAULT '[]',    -- JSON, as written
  entities TEXT NOT NULL DEFAULT '[]',-- JSON, as written
  kind TEXT NOT NULL DEFAULT 'fact',
  source TEXT, asserted_by TEXT, source_ref TEXT,
  session_id TEXT, message_id TEXT,
  created_at INTEGER NOT NULL,        -- recorded
  verified_at INTEGER,
  last_accessed INTEGER NOT NULL,
  access_count INTEGER NOT NULL DEFAULT 0,
  valid_from INTEGER NOT NULL,
  valid_to INTEGER,                   -- NULL while open
  state INTEGER NOT NULL DEFAULT 0,   -- core.facts.State
  successor INTEGER REFERENCES facts(id),
  successor_ref TEXT,                 -- id from a file that is not (yet) in this store
  known_from INTEGER NOT NULL,        -- since when this window and state are what we believe
  cluster INTEGER NOT NULL REFERENCES clusters(id),
  core INTEGER NOT NULL DEFAULT 0,    -- bits of the cluster's set that this fact shares
  set_id INTEGER REFERENCES entity_sets(id),
  pending INTEGER NOT NULL DEFAULT 0, -- 1 = came with collisions that nobody has settled
  position INTEGER NOT NULL DEFAULT 0,-- order of lines in facts.jsonl
  extra TEXT NOT NULL DEFAULT '{}'    -- JSON: keys of the file that are not ours
) STRICT;
CREATE INDEX IF NOT EXISTS facts_by_hash ON facts(text_hash);
CREATE INDEX IF NOT EXISTS facts_by_created ON facts(created_at);
CREATE INDEX IF NOT EXISTS facts_by_use ON facts(last_accessed) WHERE state = 0;
CREATE INDEX IF NOT EXISTS facts_by_core ON facts(cluster, core) WHERE state = 0;
CREATE INDEX IF NOT EXISTS facts_by_cluster ON facts(cluster) WHERE state <> 0;
CREATE INDEX IF NOT EXISTS facts_by_set ON facts(set_id) WHERE state = 0;
CREATE INDEX IF NOT EXISTS facts_ending ON facts(cluster, valid_to)
  WHERE state = 0 AND valid_to IS NOT NULL;
CREATE INDEX IF NOT EXISTS facts_ending_by_set ON facts(set_id, valid_to)
  WHERE state = 0 AND valid_to IS NOT NULL;
CREATE INDEX IF NOT EXISTS facts_by_successor ON facts(successor) WHERE successor IS NOT NULL;
CREATE INDEX IF NOT EXISTS facts_by_session ON facts(session_id) WHERE session_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS facts_pending ON facts(id) WHERE pending = 1;

-- What was believed before: one row per change of window or state.
CREATE TABLE IF NOT EXISTS fact_versions (
  fact INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  known_from INTEGER NOT NULL,
  known_to INTEGER NOT NULL,
  valid_from INTEGER NOT NULL, valid_to INTEGER,
  state INTEGER NOT NULL, successor INTEGER,
  PRIMARY KEY (fact, known_from, known_to)
) STRICT, WITHOUT ROWID;

-- Entities, and tags (type `tag`), by normal form.
CREATE TABLE IF NOT EXISTS entities (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,           -- type:name, normal form
  bare TEXT NOT NULL,                 -- the name across types
  written TEXT NOT NULL,              -- as first written
  created_at INTEGER NOT NULL,
  clusters INTEGER NOT NULL DEFAULT 0 -- about how many clusters have it in their set: an order
                                      -- of search, never a result
) STRICT;
CREATE INDEX IF NOT EXISTS entities_by_bare ON entities(bare);
CREATE TABLE IF NOT EXISTS entity_aliases (
  key TEXT PRIMARY KEY, bare TEXT NOT NULL, written TEXT NOT NULL,
  entity INTEGER NOT NULL REFERENCES entities(id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entity_aliases_by_entity ON entity_aliases(entity);
CREATE INDEX IF NOT EXISTS entity_aliases_by_bare ON entity_aliases(bare);

-- entity -> facts. member = 1 when it belongs to the set that the fact is compared by.
CREATE TABLE IF NOT EXISTS fact_entities (
  entity INTEGER NOT NULL REFERENCES entities(id),
  fact INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  member INTEGER NOT NULL,
  PRIMARY KEY (entity, fact)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fact_entities_by_fact ON fact_entities(fact);

-- Distinct comparison sets: sorted entity ids, joined by commas.
CREATE TABLE IF NOT EXISTS entity_sets (
  id INTEGER PRIMARY KEY, members TEXT NOT NULL UNIQUE
) STRICT;

-- A cluster's set is that of its first fact and never widens. C<id>.
CREATE TABLE IF NOT EXISTS clusters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  size INTEGER NOT NULL,              -- members of its set
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS cluster_entities (
  entity INTEGER NOT NULL REFERENCES entities(id),
  size INTEGER NOT NULL,
  cluster INTEGER NOT NULL REFERENCES clusters(id) ON DELETE CASCADE,
  bit INTEGER NOT NULL,
  PRIMARY KEY (entity, size, cluster)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS cluster_entities_by_cluster ON cluster_entities(cluster);

-- Active facts with an open window, counted per (cluster, core) and (set, cluster), so that
-- collisions are counted from a few rows. Kept by the triggers below, whoever writes.
CREATE TABLE IF NOT EXISTS cluster_tallies (
  cluster INTEGER NOT NULL, core INTEGER NOT NULL, facts INTEGER NOT NULL,
  PRIMARY KEY (cluster, core)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS set_tallies (
  set_id INTEGER NOT NULL, cluster INTEGER NOT NULL, facts INTEGER NOT NULL,
  PRIMARY KEY (set_id, cluster)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS facts_tally_in AFTER INSERT ON facts
WHEN new.state = 0 AND new.valid_to IS NULL AND new.set_id IS NOT NULL
BEGIN
  INSERT INTO cluster_tallies VALUES(new.cluster, new.core, 1)
    ON CONFLICT DO UPDATE SET facts = facts + 1;
  INSERT INTO set_tallies VALUES(new.set_id, new.cluster, 1)
    ON CONFLICT DO UPDATE SET facts = facts + 1;
END;
CREATE TRIGGER IF NOT EXISTS facts_tally_out
AFTER UPDATE OF state, valid_to, cluster, core, set_id ON facts
WHEN old.state = 0 AND old.valid_to IS NULL AND old.set_id IS NOT NULL
BEGIN
  UPDATE cluster_tallies SET facts = facts - 1 WHERE cluster = old.cluster AND core = old.core;
  UPDATE set_tallies SET facts = facts - 1
    WHERE set_id = old.set_id AND cluster = old.cluster;
  DELETE FROM cluster_tallies WHERE cluster = old.cluster AND core = old.core AND facts = 0;
  DELETE FROM set_tallies WHERE set_id = old.set_id AND cluster = old.cluster AND facts = 0;
END;
CREATE TRIGGER IF NOT EXISTS facts_tally_back
AFTER UPDATE OF state, valid_to, cluster, core, set_id ON facts
WHEN new.state = 0 AND new.valid_to IS NULL AND new.set_id IS NOT NULL
BEGIN
  INSERT INTO cluster_tallies VALUES(new.cluster, new.core, 1)
    ON CONFLICT DO UPDATE SET facts = facts + 1;
  INSERT INTO set_tallies VALUES(new.set_id, new.cluster, 1)
    ON CONFLICT DO UPDATE SET facts = facts + 1;
END;

-- conflict:<id>. status: open, resolved, dismissed. fact_a < fact_b is not required.
CREATE TABLE IF NOT EXISTS conflicts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  fact_a INTEGER NOT NULL REFERENCES facts(id),
  fact_b INTEGER NOT NULL REFERENCES facts(id),
  severity TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'open',
  note TEXT, opened_at INTEGER NOT NULL, opened_by TEXT,
  resolved_at INTEGER, resolved_by TEXT, resolution TEXT,
  winner INTEGER REFERENCES facts(id)
) STRICT;
CREATE INDEX IF NOT EXISTS conflicts_by_a ON conflicts(fact_a);
CREATE INDEX IF NOT EXISTS conflicts_by_b ON conflicts(fact_b);
CREATE INDEX IF NOT EXISTS conflicts_by_status ON conflicts(status);

-- Who did what and when, with what undo needs. Never holds a fact's text. L<id>, B<batch>.
CREATE TABLE IF NOT EXISTS change_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  batch INTEGER,                      -- NULL: the batch that it begins, B<id>
  revision INTEGER NOT NULL,
  at INTEGER NOT NULL,
  op TEXT NOT NULL,
  actor TEXT, note TEXT,
  before TEXT NOT NULL DEFAULT '{}',  -- JSON: table -> rows as they were
  undone_by INTEGER                   -- the log entry that took it back
) STRICT;
CREATE INDEX IF NOT EXISTS change_log_by_revision ON change_log(revision);
CREATE INDEX IF NOT EXISTS change_log_by_batch ON change_log(batch) WHERE batch IS NOT NULL;
CREATE TABLE IF NOT EXISTS change_subjects (
  kind INTEGER NOT NULL,              -- 0 fact, 1 conflict, 2 entity
  subject INTEGER NOT NULL,
  entry INTEGER NOT NULL REFERENCES change_log(id) ON DELETE CASCADE,
  PRIMARY KEY (kind, subject, entry)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS change_subjects_by_entry ON change_subjects(entry);

-- A key states once: what it gave, and a hash of what was asked.
CREATE TABLE IF NOT EXISTS idempotency (
  key TEXT PRIMARY KEY, asked BLOB NOT NULL, given TEXT NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS idempotency_by_time ON idempotency(at);

-- Files and commits that a fact speaks about, as they were when it was stated or verified.
CREATE TABLE IF NOT EXISTS bindings (
  fact INTEGER NOT NULL REFERENCES facts(id) ON DELETE CASCADE,
  target TEXT NOT NULL,               -- file:<absolute path> or commit:<id>
  size INTEGER, mtime_ns INTEGER, hash BLOB,
  PRIMARY KEY (fact, target)
) STRICT, WITHOUT ROWID;
