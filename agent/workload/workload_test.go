package workload_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "github.com/spiffe/go-spiffe/v2/proto/spiffe/workload"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/workloadapi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/agent/workload"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var (
	wiki = kit.ID("service/wiki")
	blog = kit.ID("service/ursula/blog")
	db   = kit.ID("service/db")
)

// fetchEnv is the environment variable that makes this test binary a client. The client fetches an
// SVID from a socket and prints its ID or the error.
const fetchEnv = "FLORETE_TEST_FETCH"

func TestMain(m *testing.M) {
	if socket := os.Getenv(fetchEnv); socket != "" {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Patience)
		defer cancel()
		svid, err := workloadapi.FetchX509SVID(ctx, workloadapi.WithAddr(socket))
		if err != nil {
			fmt.Println(status.Code(err), err)
		} else {
			fmt.Println(svid.ID)
		}
		os.Exit(0)
	}
	agenttest.Main(m)
}

// host is a host that serves the Workload API to the given callers.
type host struct {
	*agenttest.Host
	ca     *kit.CA
	list   int64 // number of the newest revocation list
	socket string
	addr   string
	stop   func()
}

func me() []uint32 { return []uint32{uint32(os.Getuid())} }

func newHost(t *testing.T, callers ...document.Caller) *host {
	t.Helper()
	ca := kit.NewCA()
	h := &host{Host: agenttest.NewHost(t, "ursula", ca), ca: ca}
	h.socket = filepath.Join(t.TempDir(), "workload.sock")
	h.addr = "unix://" + h.socket
	h.accept(callers...)
	return h
}

func (h *host) accept(callers ...document.Caller) {
	h.Accept(document.Forwarder{Callers: callers}, wiki, blog, db)
}

func (h *host) deliver(ids ...spiffe.ID) {
	for _, id := range ids {
		h.Deliver(h.ca, id, time.Hour)
	}
}

func (h *host) serve(t *testing.T) {
	t.Helper()
	ln, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(h.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- workload.Serve(ctx, ln, workload.Config{Layout: h.Layout, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Poll: time.Hour})
	}()
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := kit.Reads(t, "the Workload API to end", done); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { h.stop() })
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	t.Cleanup(cancel)
	return ctx
}

// stub returns a client of the Workload API that does not add the header of the specification.
func (h *host) stub(t *testing.T) api.SpiffeWorkloadAPIClient {
	t.Helper()
	conn, err := grpc.NewClient(h.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return api.NewSpiffeWorkloadAPIClient(conn)
}

func withHeader(ctx context.Context, value ...string) context.Context {
	for _, v := range value {
		ctx = metadata.AppendToOutgoingContext(ctx, "workload.spiffe.io", v)
	}
	return ctx
}

// TestSVIDs checks that a process gets the SVIDs of all identities that the manifest grants it, in
// order.
func TestSVIDs(t *testing.T) {
	h := newHost(t, document.Caller{ID: db, UIDs: me()}, document.Caller{ID: wiki, UIDs: me(), Workload: true}, document.Caller{ID: blog, UIDs: me(), Workload: true})
	h.deliver(wiki, blog, db)
	h.serve(t)
	x, err := workloadapi.FetchX509Context(within(t), workloadapi.WithAddr(h.addr))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		id   spiffe.ID
		hint string
	}{{wiki, "wiki"}, {blog, "blog.ursula"}} {
		if len(x.SVIDs) != 2 || x.SVIDs[i].ID != want.id.SPIFFE() || x.SVIDs[i].Hint != want.hint {
			t.Fatalf("SVIDs %v, want %s with the hint %q at %d", x.SVIDs, want.id, want.hint, i)
		}
	}
	svid := x.DefaultSVID()
	roots, err := trust.NewRoots(kit.Domain, h.Roots)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := roots.Verify(svid.Certificates, time.Now(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth); err != nil {
		t.Error(err)
	}
	bundle, err := x.Bundles.GetX509BundleForTrustDomain(spiffeid.RequireTrustDomainFromString(kit.Domain))
	if err != nil || len(bundle.X509Authorities()) != 1 || !bundle.X509Authorities()[0].Equal(roots.Certificates()[0]) {
		t.Errorf("bundle %v, %v", bundle, err)
	}
}

// updates records the updates that a go-spiffe client receives while it watches for changes.
type updates struct {
	contexts chan *workloadapi.X509Context
	errs     chan error
}

func (u updates) OnX509ContextUpdate(c *workloadapi.X509Context) { u.contexts <- c }
func (u updates) OnX509ContextWatchError(err error)              { u.errs <- err }

func (u updates) next(t *testing.T) *workloadapi.X509Context {
	t.Helper()
	select {
	case c := <-u.contexts:
		return c
	case err := <-u.errs:
		t.Fatal(err)
	case <-time.After(kit.Patience):
		t.Fatal("no update")
	}
	return nil
}

func (u updates) refused(t *testing.T, code codes.Code) {
	t.Helper()
	select {
	case c := <-u.contexts:
		t.Fatalf("an update: %v", c.SVIDs)
	case err := <-u.errs:
		if status.Code(err) != code {
			t.Fatalf("%v, want %s", err, code)
		}
	case <-time.After(kit.Patience):
		t.Fatal("not refused")
	}
}

// TestUpdates checks that a client learns at once of renewed SVIDs, and of changes of trust or of
// access.
func TestUpdates(t *testing.T) {
	may := document.Caller{ID: wiki, UIDs: me(), Workload: true}
	h := newHost(t, may)
	h.deliver(wiki)
	h.serve(t)
	u := updates{make(chan *workloadapi.X509Context, 100), make(chan error, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = workloadapi.WatchX509Context(ctx, u, workloadapi.WithAddr(h.addr))
	}()
	defer func() { cancel(); <-done }()

	first := u.next(t).DefaultSVID()
	h.deliver(wiki)
	second := u.next(t).DefaultSVID()
	if first.Certificates[0].Equal(second.Certificates[0]) {
		t.Error("an update without the certificate that was renewed")
	}
	h.Roots = append(h.Roots, kit.NewCA().RootPEM())
	h.accept(may)
	bundle, err := u.next(t).Bundles.GetX509BundleForTrustDomain(spiffeid.RequireTrustDomainFromString(kit.Domain))
	if err != nil || len(bundle.X509Authorities()) != 2 {
		t.Errorf("%v, %v, want two roots", bundle, err)
	}
	h.accept()
	u.refused(t, codes.PermissionDenied)
	h.accept(may)
	u.next(t) // the client has tried again

	h.stop() // the client must not give up
	u.refused(t, codes.Unavailable)
	h.serve(t)
	for {
		select {
		case <-u.errs:
			continue
		case <-u.contexts:
		case <-time.After(kit.Patience):
			t.Error("the client gave up")
		}
		return
	}
}

// TestNothingNew checks that nothing is sent to a caller if new documents change nothing for it.
func TestNothingNew(t *testing.T) {
	may := document.Caller{ID: wiki, UIDs: me(), Workload: true}
	h := newHost(t, may)
	h.deliver(wiki)
	h.serve(t)
	stream, err := h.stub(t).FetchX509SVID(withHeader(within(t), "true"), &api.X509SVIDRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	h.accept(may, document.Caller{ID: db, UIDs: me()})
	time.Sleep(200 * time.Millisecond) // the documents have been read by now
	h.deliver(wiki)
	begun := time.Now()
	r, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	certs, err := x509.ParseCertificates(r.Svids[0].X509Svid)
	if err != nil {
		t.Fatal(err)
	}
	svid, err := hostdir.LoadSVID(h.Layout.Need(kit.CertNeed(wiki).ID), wiki)
	if err != nil || !svid.Chain[0].Equal(certs[0]) {
		t.Errorf("%v after %s: the first message is not of the renewal", err, time.Since(begun))
	}
}

// TestRefusals checks that a refusal has the status code that the specification requires, and that
// its message includes a remedy.
func TestRefusals(t *testing.T) {
	may := document.Caller{ID: wiki, UIDs: me(), Workload: true}
	for name, c := range map[string]struct {
		callers []document.Caller
		header  []string
		deliver []spiffe.ID
		code    codes.Code
		text    string
	}{
		"no header":         {[]document.Caller{may}, nil, []spiffe.ID{wiki}, codes.InvalidArgument, "workload.spiffe.io: true"},
		"another header":    {[]document.Caller{may}, []string{"yes"}, []spiffe.ID{wiki}, codes.InvalidArgument, "workload.spiffe.io: true"},
		"two headers":       {[]document.Caller{may}, []string{"true", "true"}, []spiffe.ID{wiki}, codes.InvalidArgument, "workload.spiffe.io: true"},
		"nobody":            {nil, []string{"true"}, []spiffe.ID{wiki}, codes.PermissionDenied, "services.<name>.workloadApi"},
		"another account":   {[]document.Caller{{ID: wiki, UIDs: []uint32{64999}, Workload: true}}, []string{"true"}, []spiffe.ID{wiki}, codes.PermissionDenied, "no identity is issued"},
		"the forwarder's":   {[]document.Caller{{ID: wiki, UIDs: me()}}, []string{"true"}, []spiffe.ID{wiki}, codes.PermissionDenied, "no identity is issued"},
		"not delivered yet": {[]document.Caller{may}, []string{"true"}, []spiffe.ID{db}, codes.Unavailable, "service/wiki is not delivered yet"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, c.callers...)
			h.deliver(c.deliver...)
			h.serve(t)
			ctx := withHeader(within(t), c.header...)
			svids, err := h.stub(t).FetchX509SVID(ctx, &api.X509SVIDRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := svids.Recv(); status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %s with %q", err, c.code, c.text)
			}
			bundles, err := h.stub(t).FetchX509Bundles(ctx, &api.X509BundlesRequest{})
			if err != nil {
				t.Fatal(err)
			}
			want := c.code
			if want == codes.Unavailable {
				want = codes.OK // the roots are available
			}
			if _, err := bundles.Recv(); status.Code(err) != want {
				t.Errorf("bundles: %v, want %s", err, want)
			}
		})
	}
}

// TestProbe checks that Probe accepts a refusal as an answer and fails if there is no server.
func TestProbe(t *testing.T) {
	h := newHost(t)
	if err := workload.Probe(within(t), h.socket); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("nobody serves: %v", err)
	}
	h.serve(t)
	if err := workload.Probe(within(t), h.socket); err != nil {
		t.Error(err)
	}
}

// TestExpired checks that the API does not send an expired SVID.
func TestExpired(t *testing.T) {
	h := newHost(t, document.Caller{ID: wiki, UIDs: me(), Workload: true})
	h.Deliver(h.ca, wiki, -time.Minute)
	h.serve(t)
	if _, err := workloadapi.FetchX509SVID(within(t), workloadapi.WithAddr(h.addr)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "renew it or set the clock") {
		t.Error(err)
	}
}

// TestAttestation checks that processes are identified by account and by systemd unit. The whole
// path of the control group must match, not only its name.
func TestAttestation(t *testing.T) {
	const unit = "florete-test-workload.service"
	system := agenttest.Cgroup(t, "/system.slice/"+unit)
	user := agenttest.Cgroup(t, "/user.slice/user-64998.slice/user@64998.service/app.slice/"+unit)
	h := newHost(t, document.Caller{ID: wiki, Units: []string{unit}, Workload: true}, document.Caller{ID: db, UIDs: []uint32{64999}, Workload: true})
	h.deliver(wiki, db)
	h.serve(t)
	kit.OpenDirs(t, filepath.Dir(h.socket))
	for name, c := range map[string]struct {
		uid   uint32
		group *os.File
		want  string
	}{
		"the unit":                       {0, system, wiki.String()},
		"the unit, of whatever account":  {64998, system, wiki.String()},
		"a unit of a user, equal name":   {64998, user, "PermissionDenied"},
		"the user's, of the account too": {64999, user, db.String()},
		"root":                           {0, nil, "PermissionDenied"},
		"the account":                    {64999, nil, db.String()},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, err := agenttest.Self(c.uid, c.group, fetchEnv+"="+h.addr)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), c.want) {
				t.Errorf("%s, %v, want %s", out, err, c.want)
			}
		})
	}
}
