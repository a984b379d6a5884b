package sqlite

import (
	"database/sql"
	"fmt"
)

// schema has one step for each version of the store, append-only. Times are Unix
// milliseconds. meta.compacted is the newest revision whose changes are gone.
var schema = []string{`
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
`, `
DROP TABLE events;
CREATE TABLE changes (revision INTEGER PRIMARY KEY, keys BLOB NOT NULL); -- see touched
UPDATE meta SET value = (SELECT value FROM meta WHERE name = 'revision') WHERE name = 'compacted';
`}

func upgrade(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version int
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version == len(schema):
		return nil
	case version > len(schema):
		return fmt.Errorf("schema version %d, this Florete knows up to %d: run the newer one, a store is never downgraded", version, len(schema))
	}
	for _, step := range schema[version:] {
		if _, err := tx.Exec(step); err != nil {
			return fmt.Errorf("upgrade from schema version %d: %w", version, err)
		}
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(schema))); err != nil {
		return err
	}
	return tx.Commit()
}
