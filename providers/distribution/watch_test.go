package distribution_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

var signing = kit.SigningKey("demo-1")

// publish puts a version in force for both nodes.
func publish(t *testing.T, e *providertest.Env, serial int64) {
	t.Helper()
	providertest.Import(t, e.Store, signing, providertest.Tree(signing, serial, "", "ursula", "raishan"))
}

type watched struct {
	hostapi.Artifact
	err error
}

// watch begins a watch, as a host does that has what a former answer brought.
func watch(t *testing.T, c *hostapi.Client, has hostapi.Artifact) <-chan watched {
	t.Helper()
	c.Tag = has.Tag()
	p, answer := c.Calls(), make(chan watched, 1)
	t.Cleanup(p.Close)
	go func() {
		a, err := p.Watch(t.Context(), has.Revision)
		answer <- watched{a, err}
	}()
	return answer
}

// answered returns the artifact of an answer.
func answered(t *testing.T, answer <-chan watched) hostapi.Artifact {
	t.Helper()
	a := kit.Reads(t, "an answer", answer)
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a.Artifact
}

// waits waits until the provider has n watches under way, of which answer is one.
func waits(t *testing.T, n int, answer <-chan watched) {
	t.Helper()
	kit.Parked(t, n, "distribution.(*parking).wait")
	if len(answer) > 0 {
		t.Fatalf("answered %+v, want nothing", <-answer)
	}
}

// published publishes documents, and returns a client of ursula with the answer that it has.
func published(t *testing.T, e *providertest.Env) (*hostapi.Client, hostapi.Artifact) {
	t.Helper()
	publish(t, e, 1000)
	c := e.Client(ursula)
	has, err := c.Artifact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, has
}

// TestWatch checks that a published version is sent at once, and that a continued watch gets no
// version twice.
func TestWatch(t *testing.T) {
	e := start(t)
	c, has := published(t, e)
	for serial := int64(1001); serial < 1004; serial++ {
		answer := watch(t, c, has)
		waits(t, 1, answer)
		publish(t, e, serial)
		next := answered(t, answer)
		if next.Revision == has.Revision || next.Tag() == has.Tag() || len(next.Documents) != 1 {
			t.Fatalf("got %+v after %+v", next, has)
		}
		has = next
	}
	rows := e.Audit()
	if len(rows) != 4 || rows[3].Caller != ursula.String() || rows[3].Need != "config-documents" {
		t.Errorf("audit: %+v", rows)
	}
	t.Log("who keeps to other documents has these once, and the next ones")
	other := watch(t, c, hostapi.Artifact{Revision: has.Revision})
	waits(t, 1, other)
	publish(t, e, 1004)
	answered(t, other)
}

// TestWatchOver checks that a watch is answered in time even if nothing is new, and that the answer
// names the revision.
func TestWatchOver(t *testing.T) {
	e := startWatch(t, 50*time.Millisecond)
	c, has := published(t, e)
	a := answered(t, watch(t, c, has))
	if !a.NotModified || a.Revision == 0 {
		t.Errorf("got %+v", a)
	}
	before := a.Revision
	has.Revision = before
	if a := answered(t, watch(t, c, has)); !a.NotModified || a.Revision != before {
		t.Errorf("got %+v", a)
	}
}

// TestWatchCompacted checks that a host that was away for longer than revisions are kept gets a
// snapshot.
func TestWatchCompacted(t *testing.T) {
	e := start(t)
	c, has := published(t, e)
	has = hostapi.Artifact{Documents: has.Documents, Revision: 1}
	publish(t, e, 1001)
	for i := range 200 {
		if _, err := e.Store.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("other", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range e.Store.Watch(t.Context(), "", has.Revision) {
		if err == nil {
			t.Fatal("the revision is not compacted")
		}
		break
	}
	if a := answered(t, watch(t, c, has)); len(a.Documents) != 1 || a.Tag() == has.Tag() {
		t.Errorf("got %+v", a)
	}
	t.Log("nor does the revision of another store, ahead of this one's, hide anything")
	has.Revision = 1 << 40
	if a := answered(t, watch(t, c, has)); len(a.Documents) != 1 {
		t.Errorf("got %+v", a)
	}
}

// TestWatchRestored checks that a revision of one process is not accepted by the next. The store
// may have been restored, and have reached the same number with other documents.
func TestWatchRestored(t *testing.T) {
	e := start(t)
	_, older := published(t, e)
	publish(t, e, 1001)
	newer := answered(t, watch(t, e.Client(ursula), older))
	e.Stop()
	e.Start()
	older.Revision = newer.Revision
	if a := answered(t, watch(t, e.Client(ursula), older)); a.Tag() != newer.Tag() {
		t.Errorf("got %+v", a)
	}
}

// TestWatchRestart checks that a provider that stops ends its watches at once, and that hosts
// continue where they were.
func TestWatchRestart(t *testing.T) {
	e := start(t)
	c, has := published(t, e)
	answer := watch(t, c, has)
	waits(t, 1, answer)
	e.Stop()
	if has.Revision = answered(t, answer).Revision; has.Revision == 0 {
		t.Error("no revision")
	}
	e.Start()
	c = e.Client(ursula)
	answer = watch(t, c, has)
	waits(t, 1, answer)
	publish(t, e, 1001)
	answered(t, answer)
}

// TestWatchImport checks that a version imported by another process, flor-provider import, is sent
// at once too.
func TestWatchImport(t *testing.T) {
	e := start(t)
	c, has := published(t, e)
	answer := watch(t, c, has)
	waits(t, 1, answer)
	other, err := sqlite.Open(filepath.Join(e.Dir, "state.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	providertest.Import(t, other, signing, providertest.Tree(signing, 1001, "", "ursula"))
	answered(t, answer)
}

// TestWatchRefused checks that the policy at the time of the answer decides, and that a watch that
// names nothing to wait for is refused.
func TestWatchRefused(t *testing.T) {
	e := start(t)
	c, has := published(t, e)
	p := c.Calls()
	defer p.Close()
	_, err := p.Watch(t.Context(), -1)
	providertest.WantError(t, err, hostapi.CodeMalformed)
	_, err = watchOnce(t, e.Client(kit.ID("node/nobody")), has)
	providertest.WantError(t, err, hostapi.CodeNotGranted)

	var last <-chan watched
	for range 4 {
		last = watch(t, e.Client(ursula), has)
	}
	waits(t, 4, last)
	_, err = watchOnce(t, e.Client(ursula), has)
	providertest.WantError(t, err, hostapi.CodeBusy)

	mine, err := e.Client(raishan).Artifact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer := watch(t, e.Client(raishan), mine)
	waits(t, 1, answer)
	e.Policy.Grants = slices.DeleteFunc(e.Policy.Grants, func(g document.Grant) bool { return g.Caller == raishan && g.Kind == "config" })
	e.Publish(providertest.Serial + 1)
	kit.Eventually(t, "the policy to be in force", func() bool {
		_, serial := e.Policies.Versioned()
		return serial == providertest.Serial+1
	})
	publish(t, e, 1001)
	providertest.WantError(t, (<-answer).err, hostapi.CodeNotGranted)
}

func watchOnce(t *testing.T, c *hostapi.Client, has hostapi.Artifact) (hostapi.Artifact, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	c.Tag = has.Tag()
	p := c.Calls()
	defer p.Close()
	return p.Watch(ctx, has.Revision)
}
