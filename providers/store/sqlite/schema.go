package sqlite

import (
	"database/sql"
	"fmt"
	"slices"
)

// required is the schema version that programs must know. The steps up to this version change what
// programs read and write. A later step leaves a view of the former tables, so that programs from
// before an upgrade continue to work.
const required = 1

// schema contains the steps that make a store. New steps may only be appended. Times are Unix
// milliseconds. The value meta.compacted is the newest revision whose changes were deleted.
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
CREATE TABLE entries ( -- whose rows are larger than a table without rowid keeps in one page
	key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL,
	created INTEGER NOT NULL, modified INTEGER NOT NULL, lease INTEGER NOT NULL
);
INSERT INTO entries SELECT * FROM kv;
DROP TABLE kv;
ALTER TABLE entries RENAME TO kv;
CREATE INDEX kv_lease ON kv (lease) WHERE lease != 0;
CREATE TABLE changes ( -- values are those of the keys
	revision INTEGER NOT NULL, step INTEGER NOT NULL,
	key BLOB NOT NULL, deleted INTEGER NOT NULL,
	PRIMARY KEY (revision, step)
) WITHOUT ROWID;
INSERT INTO changes SELECT revision, step, key, value IS NULL FROM events;
DROP TABLE events;
CREATE VIEW events AS SELECT revision, step, c.key, CASE WHEN deleted THEN NULL ELSE value END AS value, coalesce(created, 0) AS created
	FROM changes c LEFT JOIN kv ON kv.key = c.key AND modified = revision WHERE deleted OR kv.key IS NOT NULL;
CREATE TRIGGER events_insert INSTEAD OF INSERT ON events BEGIN
	INSERT INTO changes VALUES (NEW.revision, NEW.step, NEW.key, NEW.value IS NULL);
END;
CREATE TRIGGER events_delete INSTEAD OF DELETE ON events BEGIN
	DELETE FROM changes WHERE revision <= OLD.revision;
END;
`}

// made is a query for two numbers: the version that programs must know to use a store, and the
// number of steps that made the store.
const made = `SELECT user_version, max(user_version, 2 * EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'changes')) FROM pragma_user_version`

func upgrade(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var version, steps int
	if err := tx.QueryRow(made).Scan(&version, &steps); err != nil {
		return err
	}
	switch {
	case version > required:
		return fmt.Errorf("schema version %d, this Florete knows up to %d: run the newer one, a store is never downgraded", version, required)
	case steps == len(schema):
		return nil
	}
	frozen, err := triggers(tx)
	if err != nil {
		return err
	}
	for _, step := range append(slices.Clone(schema[steps:]), frozen...) {
		if _, err := tx.Exec(step); err != nil {
			return fmt.Errorf("upgrade from schema version %d: %w", version, err)
		}
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", required)); err != nil {
		return err
	}
	return tx.Commit()
}

// triggers returns the triggers that Freeze made. They must be made again after a step that
// replaces a table.
func triggers(tx *sql.Tx) ([]string, error) {
	rows, err := tx.Query("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'kv'")
	if err != nil {
		return nil, err
	}
	return collect(rows, func(r *sql.Rows) (text string, err error) {
		err = r.Scan(&text)
		return text, err
	})
}
