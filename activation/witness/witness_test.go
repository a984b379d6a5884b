package witness_test

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/activation/witness"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/tlog"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var ursula = kit.ID("node/ursula")

// cluster is a provider of certificates, and a host that witnesses its log.
type cluster struct {
	*testing.T
	*providertest.Env
	knows hostdir.Witnessed
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, Env: providertest.NewEnv(t, "ursula")}
	c.Logged = true
	c.Start()
	return c
}

// decide makes the provider refuse something, and write a row.
func (c *cluster) decide() {
	c.Helper()
	calls := c.Client(ursula).Calls()
	defer calls.Close()
	_, err := calls.Do(c.Context(), hostapi.Path("cert"), hostapi.Request{Need: "cert-other", Serial: providertest.Serial, Generation: 1, Body: []byte("{}")})
	if hostapi.AsError(err).Kind != hostapi.Denied {
		c.Fatal(err)
	}
}

// see witnesses until the log has that many more rows, including all in the store, and returns what
// is wrong with it.
func (c *cluster) see(more int64) string {
	c.Helper()
	was := c.knows
	kit.Succeeds(c.T, "the rows to be witnessed", func() error {
		calls := c.Client(ursula).Calls()
		answer, err := calls.Checkpoint(c.Context(), "cert", uint64(was.Size))
		calls.Close()
		if err != nil {
			if hostapi.AsError(err).Kind != hostapi.Transient {
				c.Fatal(err)
			}
			return err
		}
		c.knows = witness.Take(was, answer, unixtime.Of(time.Now()))
		all := more == 0 || int(c.knows.Size) >= len(c.Rows())
		if c.knows.Fault != "" || c.knows.Size >= was.Size+more && all {
			return nil
		}
		return fmt.Errorf("%+v, want %d rows more than %d", c.knows, more, was.Size)
	})
	return c.knows.Fault
}

func (c *cluster) file(name string) string { return filepath.Join(c.Dir, name) }

// edit changes the file of the store, while the provider is down.
func (c *cluster) edit(query string) {
	c.Helper()
	db, err := sql.Open("sqlite", c.file("state.db"))
	if err != nil {
		c.Fatal(err)
	}
	defer db.Close()
	if r, err := db.Exec(query); err != nil {
		c.Fatal(err)
	} else if n, _ := r.RowsAffected(); n == 0 {
		c.Fatal("nothing was edited")
	}
}

// copyTo copies a directory of files.
func (c *cluster) copyTo(from, to string) {
	c.Helper()
	if err := os.RemoveAll(to); err != nil {
		c.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		c.Fatalf("%s", out)
	}
}

// TestHonest checks that a log that grows is accepted, over restarts.
func TestHonest(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for range 3 {
		c.decide()
		if fault := c.see(1); fault != "" {
			t.Error(fault)
		}
		c.Restart()
	}
}

// TestFound checks that a host finds every kind of manipulation of a provider's log.
func TestFound(t *testing.T) {
	const oldest = "(SELECT min(key) FROM kv WHERE key > 'audit/')"
	for name, attack := range map[string]struct {
		do   func(c *cluster)
		want string
	}{
		"a row is edited":  {func(c *cluster) { c.edit("UPDATE kv SET value = CAST('{}' AS BLOB) WHERE key = " + oldest) }, "1 rows of the store were edited"},
		"a row is removed": {func(c *cluster) { c.edit("DELETE FROM kv WHERE key = " + oldest) }, "and 1 are gone"},
		"a row is edited, and the log made anew with its key": {func(c *cluster) {
			c.edit("UPDATE kv SET value = CAST('{}' AS BLOB) WHERE key = " + oldest)
			for _, name := range []string{"checkpoint", "tile", ".state"} {
				if err := os.RemoveAll(c.file("log/" + name)); err != nil {
					c.Fatal(err)
				}
			}
		}, "are others than before"},
		"the log begins anew": {func(c *cluster) {
			if err := os.RemoveAll(c.file("log")); err != nil {
				c.Fatal(err)
			}
		}, "another audit log"},
		"the database is rolled back": {func(c *cluster) {
			for _, name := range []string{"state.db", "state.db-wal", "state.db-shm"} {
				os.Remove(c.file(name))
				b, err := os.ReadFile(c.Dir + "-before/" + name)
				if err == nil {
					err = os.WriteFile(c.file(name), b, 0o600)
				}
				if err != nil && name == "state.db" {
					c.Fatal(err)
				}
			}
		}, " are gone"},
		"the host is rolled back": {func(c *cluster) {
			c.copyTo(c.Dir+"-before", c.Dir)
		}, "rows, it had"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.decide()
			if fault := c.see(1); fault != "" {
				t.Fatal(fault)
			}
			c.Stop()
			before := c.Dir + "-before"
			c.copyTo(c.Dir, before)
			c.Start()
			c.decide()
			if fault := c.see(1); fault != "" {
				t.Fatal(fault)
			}
			c.Stop()
			attack.do(c)
			c.Start()
			kit.Eventually(t, "a row in the log", func() bool { // meanwhile nobody looks
				_, newest, err := tlog.Reader{Dir: c.file("log")}.Checkpoint(t.Context())
				return err == nil && newest.Size > 0
			})
			knew := c.knows
			fault := ""
			kit.Eventually(t, "a fault to be found", func() bool { fault = c.see(0); return fault != "" })
			if !strings.Contains(fault, attack.want) {
				t.Fatalf("found %q, want %q", fault, attack.want)
			}
			if c.knows.Refused != "" && (c.knows.Checkpoint != knew.Checkpoint || c.knows.Refused == knew.Checkpoint) {
				t.Errorf("the host has forgotten the log of before: %+v", c.knows)
			}
		})
	}
}
