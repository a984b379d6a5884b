package distribution_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

// get requests a path as ursula, who has documents with a tag.
func get(t *testing.T, e *providertest.Env, path, has string) *providertest.Conn {
	t.Helper()
	c := e.Connect(t, ursula, e.Issue(ursula, time.Hour))
	c.NetConn().(*net.TCPConn).SetReadBuffer(4096)
	again(c, path, has)
	return c
}

func again(c *providertest.Conn, path, has string) {
	proof := base64.StdEncoding.EncodeToString([]byte(c.Proof(nil)))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: provider\r\n%s: %s\r\n%s: %s\r\n\r\n", path, hostapi.HeaderDevice, proof, hostapi.HeaderHas, has)
}

// begun waits until an answer has begun, which was decided then.
func begun(t *testing.T, c *providertest.Conn) {
	t.Helper()
	const want = "HTTP/1.1 200"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c.In, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v", got, err)
	}
}

// TestSlowReaders checks documents of a provider host of a large cluster, whose length grows with the
// cluster. Nodes that request them and do not read the answers delay nobody, and a node that watches
// and does not read the answer is cut off.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	e := start(t)
	const more = 5 << 20 // than the 4 MiB that Linux keeps for a reader by default
	providertest.Import(t, e.Store, signing, providertest.Tree(signing, 1000, strings.Repeat("x", more), "ursula"))
	watching := get(t, e, hostapi.PathWatch+"?from=0", `"others"`)
	begun(t, watching)
	const slots = 32
	for range slots {
		begun(t, get(t, e, hostapi.PathArtifact+"ursula", ""))
	}
	_, err := e.Client(kit.ID("node/nobody")).Artifact(t.Context())
	providertest.WantError(t, err, hostapi.CodeNotGranted)
	a, err := e.Client(ursula).Artifact(t.Context())
	if err != nil || len(a.Documents) != 1 {
		t.Errorf("itself: %d documents, %v", len(a.Documents), err)
	}
	kit.Eventually(t, "the connection to be closed", func() bool {
		_, err := watching.NetConn().Write([]byte("x"))
		return err != nil
	})
}

// TestWatchGoesOn checks that a connection whose watch ended without documents can carry further
// requests.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	e := startWatch(t, 50*time.Millisecond)
	_, has := published(t, e)
	path := hostapi.PathWatch + "?from=0"
	c := get(t, e, path, has.Tag())
	for range 3 {
		answer, err := http.ReadResponse(c.In, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusNotModified || answer.Header.Get(hostapi.HeaderRevision) == "" || answer.Close {
			t.Errorf("got %s, %v, want that the connection goes on", answer.Status, answer.Header)
		}
		again(c, path, has.Tag())
	}
}

// TestWatchNewerFormat checks that a host waits, and an audit row says so, if only a newer provider
// can read its watch.
func TestWatchNewerFormat(t *testing.T) {
	e := start(t)
	c := e.Connect(t, ursula, e.Issue(ursula, time.Hour))
	req, err := http.NewRequest(http.MethodGet, "https://provider"+hostapi.PathWatch+"?from=new", nil)
	if err != nil {
		t.Fatal(err)
	}
	newer := document.Format{Major: document.NewestFormat.Major, Minor: document.NewestFormat.Minor + 1}
	req.Header.Set(document.HeaderFormat, newer.String())
	providertest.WantError(t, c.Send(req), hostapi.CodeNewerFormat)
	if rows := e.Audit(); len(rows) != 1 || rows[0].Code != hostapi.CodeNewerFormat.Name {
		t.Errorf("audit: %+v", rows)
	}
}
