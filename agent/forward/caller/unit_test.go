package caller_test

import (
	"testing"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestUnits checks that a process acts with the identity of its system unit, determined by the
// whole path of its control group and not by the last name alone.
func TestUnits(t *testing.T) {
	wiki, db := kit.ID("service/wiki"), kit.ID("service/db")
	table, problems := caller.NewTable([]document.Caller{
		{ID: wiki, Units: []string{"florete-test-wiki.service"}},
		{ID: db, Units: []string{"florete-test-db@a.service"}},
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for path, want := range map[string]spiffe.ID{
		"/system.slice/florete-test-wiki.service":                                         wiki,
		`/system.slice/system-florete\x2dtest\x2ddb.slice/florete-test-db@a.service`:      db,
		`/system.slice/system-florete\x2dtest\x2ddb.slice/florete-test-db@b.service`:      {},
		"/user.slice/user-64999.slice/user@64999.service/florete-test-wiki.service":       {},
		"/system.slice/florete-test-other.service/florete-test-wiki.service":              {},
		"/florete-test-wiki.service":                                                      {},
		"/system.slice/florete-test-wiki.service/florete-test-payload":                    {},
		"/system.slice/florete-test-machine.slice/system.slice/florete-test-wiki.service": {},
	} {
		t.Run(path, func(t *testing.T) {
			group := agenttest.Cgroup(t, path)
			ln := listen(t, "127.0.0.1:0")
			done := make(chan error, 1)
			go func() { done <- agenttest.DialIn(t, group, ln.Addr().String()) }()
			c := accept(t, ln)
			p, err := caller.FindProcess(c)
			if err != nil || p.UID != 0 || p.Cgroup == 0 {
				t.Fatalf("%+v, %v, want one of root with a control group", p, err)
			}
			if id, _ := table.Identity(p); id != want {
				t.Errorf("acts as %q, want %q", id, want)
			}
			if got := table.MayAct(p, wiki); got != (want == wiki) {
				t.Errorf("may act as %s: %v", wiki, got)
			}
			b := make([]byte, 1)
			c.Read(b)
			c.Write(b)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnitThatDoesNotRun checks that no process belongs to a unit that does not run, in particular
// none whose control group is unknown.
func TestUnitThatDoesNotRun(t *testing.T) {
	table, _ := caller.NewTable([]document.Caller{{ID: kit.ID("service/wiki"), Units: []string{"florete-test-none.service"}, Workload: true}})
	if id, ok := table.Identity(caller.Process{UID: 0}); ok {
		t.Errorf("uid 0 acts as %s", id)
	}
	if ids := table.Workload(caller.Process{UID: 0}); len(ids) > 0 {
		t.Errorf("uid 0 may have %v", ids)
	}
}
