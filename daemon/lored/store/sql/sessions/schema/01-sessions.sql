-- Sessions, messages, actions, and the cursor of every file read. Instants are microseconds UTC.
CREATE TABLE IF NOT EXISTS sessions (
  id INTEGER PRIMARY KEY,
  agent TEXT NOT NULL,
  native_id TEXT NOT NULL,            -- the agent's own id; subagents: <parent>/<agent id>
  parent TEXT,                        -- native id of the parent (subagent) session
  forked_from TEXT,                   -- native id of the session whose messages it repeats
  is_subagent INTEGER NOT NULL DEFAULT 0,
  workspace TEXT,                     -- workspace id, NULL when the session has none
  cwd TEXT, worktree TEXT, branch TEXT, commit_id TEXT,
  model TEXT, title TEXT, agent_version TEXT,
  status TEXT NOT NULL DEFAULT 'active',
  started_at INTEGER, ended_at INTEGER,
  cost_usd REAL, tokens TEXT NOT NULL DEFAULT '{}',
  message_count INTEGER NOT NULL DEFAULT 0,
  user_count INTEGER NOT NULL DEFAULT 0,
  action_count INTEGER NOT NULL DEFAULT 0,
  positions INTEGER NOT NULL DEFAULT 0, -- the next free position
  shared INTEGER NOT NULL DEFAULT 0,  -- 1: holds messages that another session holds too
  born_at INTEGER,                    -- shared only: its first message that no other one holds
  fold BLOB,                          -- state of the summary fold, MessagePack
  summary TEXT NOT NULL DEFAULT '{}', -- rendered summary, JSON
  extra TEXT NOT NULL DEFAULT '{}',
  indexed_at INTEGER NOT NULL,
  UNIQUE (agent, native_id)
) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions(ended_at);
CREATE INDEX IF NOT EXISTS sessions_by_workspace ON sessions(workspace, ended_at);
CREATE INDEX IF NOT EXISTS sessions_by_native ON sessions(native_id);
CREATE INDEX IF NOT EXISTS sessions_by_parent ON sessions(parent) WHERE parent IS NOT NULL;

-- A message belongs to the oldest session that holds it; forks and resumes that repeat it
-- point at it by message_links. role: 0 user, 1 assistant, 2 tool, 3 summary, 4 context.
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  key BLOB NOT NULL,                  -- first 16 bytes of BLAKE3(agent, record key)
  record_key TEXT,                    -- the agent's own record id, where it has one
  position INTEGER NOT NULL,
  role INTEGER NOT NULL,
  at INTEGER,
  text ANY NOT NULL,                  -- UTF-8 TEXT, or a zstd frame (BLOB) when that is smaller
  truncated_bytes INTEGER NOT NULL DEFAULT 0,
  flags INTEGER NOT NULL DEFAULT 0    -- 1 rolled back
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS messages_by_key ON messages(key);
CREATE INDEX IF NOT EXISTS messages_by_session ON messages(session, position);

CREATE TABLE IF NOT EXISTS message_links (
  session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
  PRIMARY KEY (session, position, message)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS message_links_by_message ON message_links(message);

CREATE TABLE IF NOT EXISTS actions (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  message INTEGER,                    -- the assistant message that called the tool
  position INTEGER NOT NULL,          -- position in the session, shared with messages
  key BLOB NOT NULL,
  kind TEXT NOT NULL, tool TEXT NOT NULL,
  target TEXT, command TEXT,
  status TEXT NOT NULL, exit_code INTEGER,
  started_at INTEGER, ended_at INTEGER,
  output INTEGER,                     -- the tool message with its output, where there is one
  excerpt ANY,                        -- else head and tail of it, stored as messages.text
  commit_id TEXT
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS actions_by_key ON actions(key);
CREATE INDEX IF NOT EXISTS actions_by_session ON actions(session, position);
CREATE INDEX IF NOT EXISTS actions_by_target ON actions(target) WHERE target IS NOT NULL;
CREATE INDEX IF NOT EXISTS actions_by_output ON actions(output) WHERE output IS NOT NULL;
CREATE INDEX IF NOT EXISTS actions_by_commit ON actions(commit_id) WHERE commit_id IS NOT NULL;

CREATE TABLE IF NOT EXISTS compactions (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  key BLOB NOT NULL UNIQUE, position INTEGER NOT NULL, at INTEGER,
  summary TEXT NOT NULL, kept_facts TEXT NOT NULL, next_steps TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS compactions_by_session ON compactions(session);

-- One row per file ever read: the cursor. Written in the transaction that stores its rows.
CREATE TABLE IF NOT EXISTS files (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  agent TEXT NOT NULL, root TEXT NOT NULL,
  session INTEGER REFERENCES sessions(id) ON DELETE SET NULL,
  device INTEGER, inode INTEGER, size INTEGER,
  mtime_ns INTEGER,                   -- NULL: too fresh to be trusted
  offset INTEGER NOT NULL DEFAULT 0,  -- of the uncompressed content
  scanned INTEGER NOT NULL DEFAULT 0, -- no line ends between offset and here
  head_hash BLOB, tail_hash BLOB,
  parser_version INTEGER NOT NULL,
  state BLOB,                         -- parser state between lines, MessagePack
  anew INTEGER NOT NULL DEFAULT 0,    -- read again from the start, newer content wins; 1: its
                                      -- session is put in order anew, 2: places stay
  records INTEGER NOT NULL DEFAULT 0,
  damage TEXT NOT NULL DEFAULT '{}',  -- reason -> count
  failures INTEGER NOT NULL DEFAULT 0, retry_at INTEGER, error TEXT,
  blocked TEXT,                       -- why it is never read: forgotten, excluded
  read_at INTEGER, gone_at INTEGER
) STRICT;
CREATE INDEX IF NOT EXISTS files_by_session ON files(session);
CREATE INDEX IF NOT EXISTS files_by_inode ON files(device, inode);

-- What was forgotten stays forgotten, also when its file is read again.
CREATE TABLE IF NOT EXISTS tombstones (
  kind TEXT NOT NULL, key BLOB NOT NULL, at INTEGER NOT NULL, reason TEXT,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
