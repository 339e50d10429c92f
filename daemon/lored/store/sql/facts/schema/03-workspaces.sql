-- Known workspaces; used in the global store only.
CREATE TABLE IF NOT EXISTS workspaces (
  id TEXT PRIMARY KEY,                -- first 12 hex digits of BLAKE3(root)
  root TEXT NOT NULL UNIQUE,
  how TEXT NOT NULL,
  device INTEGER, inode INTEGER,      -- NULL when the directory was never seen on this machine
  first_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
-- Directories whose memory is that of another workspace (moved, cloned, split off).
CREATE TABLE IF NOT EXISTS workspace_aliases (
  path TEXT PRIMARY KEY,
  workspace TEXT NOT NULL REFERENCES workspaces(id)
) STRICT, WITHOUT ROWID;
-- Directories that are a workspace of their own inside another one (monorepo parts).
CREATE TABLE IF NOT EXISTS workspace_splits (path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
