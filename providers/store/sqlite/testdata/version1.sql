-- A store of the first version, in which a was written twice.
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 1), ('compacted', 0);
CREATE TABLE kv (
	key BLOB PRIMARY KEY, value BLOB NOT NULL,
	created INTEGER NOT NULL, modified INTEGER NOT NULL, lease INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX kv_lease ON kv (lease) WHERE lease != 0;
CREATE TABLE events (
	revision INTEGER NOT NULL, step INTEGER NOT NULL,
	key BLOB NOT NULL, value BLOB, created INTEGER NOT NULL, -- no value: deleted
	PRIMARY KEY (revision, step)
) WITHOUT ROWID;
CREATE TABLE leases (id INTEGER PRIMARY KEY AUTOINCREMENT, ttl INTEGER NOT NULL, expires INTEGER NOT NULL);
CREATE INDEX leases_expires ON leases (expires);
PRAGMA user_version = 1;
UPDATE meta SET value = 3 WHERE name = 'revision';
INSERT INTO kv VALUES (X'61', X'32', 2, 3, 0);
INSERT INTO events VALUES (2, 1, X'61', X'31', 2), (3, 1, X'61', X'32', 2);
