package hostdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var alice, node = kit.ID("user/alice"), kit.ID("node/laptop")

func svidSetup(t *testing.T) (*kit.CA, *agenttest.Host) {
	t.Helper()
	ca := kit.NewCA()
	h := agenttest.NewHost(t, "laptop", ca)
	h.Accept(document.Forwarder{}, alice)
	return ca, h
}

func svidManifest(t *testing.T, h *agenttest.Host) document.Manifest {
	t.Helper()
	doc, err := h.Layout.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return doc.Manifest()
}

func TestLoad(t *testing.T) {
	ca, h := svidSetup(t)
	if set := h.Identities(t); set.SVID(alice) != nil || set.SVID(node) != nil {
		t.Error("SVIDs before any was delivered")
	}
	h.Deliver(ca, alice, time.Hour)
	set := h.Identities(t)
	svid := set.SVID(alice)
	if svid == nil || svid.ID != alice || !svid.Valid(time.Now()) || svid.Valid(time.Now().Add(2*time.Hour)) || svid.Valid(time.Now().Add(-2*time.Hour)) {
		t.Fatalf("alice's SVID is %+v", svid)
	}
	if set.SVID(node) != nil {
		t.Error("the node's SVID is there too")
	}
}

// TestAnotherAccounts checks that the forwarder ignores SVIDs that were delivered to another
// account.
func TestAnotherAccounts(t *testing.T) {
	ca, h := svidSetup(t)
	h.Deliver(ca, alice, time.Hour)
	m := svidManifest(t, h)
	for i := range m.Needs {
		m.Needs[i].Deliver.Owner = "florete-provider"
	}
	if set, problems := hostdir.LoadSVIDs(h.Layout, m, &hostdir.SVIDSet{}); set.SVID(alice) != nil || len(problems) > 0 {
		t.Errorf("alice's SVID is %v, problems %v", set.SVID(alice), problems)
	}
}

func TestSameUntilRenewed(t *testing.T) {
	ca, h := svidSetup(t)
	h.Deliver(ca, alice, time.Hour)
	first := h.Identities(t)
	second, _ := hostdir.LoadSVIDs(h.Layout, svidManifest(t, h), first)
	if second.SVID(alice) != first.SVID(alice) || second.Trust != first.Trust {
		t.Error("what did not change is another value")
	}
	h.Deliver(ca, alice, time.Hour)
	third, _ := hostdir.LoadSVIDs(h.Layout, svidManifest(t, h), second)
	if third.SVID(alice) == first.SVID(alice) {
		t.Error("a renewed SVID is the same value")
	}
}

// TestSVIDCache checks that an SVID is parsed anew exactly when its files have changed.
func TestSVIDCache(t *testing.T) {
	ca, h := svidSetup(t)
	dir := h.Layout.Need(kit.CertNeed(alice).ID)
	var cache hostdir.SVIDCache
	load := func() *trust.SVID {
		t.Helper()
		svid, err := cache.Load(dir, alice)
		if err != nil {
			t.Fatal(err)
		}
		return svid
	}
	if _, err := cache.Load(dir, alice); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is delivered: %v", err)
	}
	h.Deliver(ca, alice, time.Hour)
	first := load()
	if load() != first {
		t.Error("an SVID is parsed twice")
	}
	if _, err := cache.Load(dir, node); err == nil {
		t.Error("alice's SVID is taken for the node's")
	}
	h.Deliver(ca, alice, time.Hour)
	if second := load(); second.Cert.Leaf.Equal(first.Cert.Leaf) {
		t.Error("a renewed SVID is not read")
	}
	key := filepath.Join(hostdir.Current(dir), hostdir.FileKey)
	os.Remove(key)
	if err := os.WriteFile(key, []byte("damaged"), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := cache.Load(dir, alice); err == nil {
		t.Error("a damaged key is not noticed")
	}
}

// TestUnusable checks that an unusable SVID is reported as a problem, and that the previous SVID
// stays in use.
func TestUnusable(t *testing.T) {
	ca, h := svidSetup(t)
	h.Deliver(ca, alice, time.Hour)
	good := h.Identities(t)
	current := hostdir.Current(h.Layout.Need(kit.CertNeed(alice).ID))
	otherSVID, otherKey := kit.EncodeSVID(ca.Issue(kit.ID("user/bob"), time.Hour))
	strangers, strangersKey := kit.EncodeSVID(kit.NewCA().Issue(alice, time.Hour))
	key, err := os.ReadFile(filepath.Join(current, hostdir.FileKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what      string
		svid, key []byte
		want      string
	}{
		{"another identity", otherSVID, otherKey, "certificate is of spiffe://demo.flor/user/bob, want spiffe://demo.flor/user/alice"},
		{"another CA", strangers, strangersKey, "certificate signed by unknown authority"},
		{"another key", otherSVID, key, "private key does not match public key"},
		{"no certificate", nil, key, "failed to find any PEM data in certificate input"},
	} {
		t.Run(x.what, func(t *testing.T) {
			for name, b := range map[string][]byte{hostdir.FileSVID: x.svid, hostdir.FileKey: x.key} {
				os.Remove(filepath.Join(current, name))
				if err := os.WriteFile(filepath.Join(current, name), b, 0o400); err != nil {
					t.Fatal(err)
				}
			}
			set, problems := hostdir.LoadSVIDs(h.Layout, svidManifest(t, h), good)
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), x.want) || !strings.Contains(problems[0].Error(), `need "cert-user-alice"`) {
				t.Errorf("problems %v, want %q", problems, x.want)
			}
			if set.SVID(alice) != good.SVID(alice) {
				t.Error("the good SVID is gone")
			}
		})
	}
}

func TestExpiredIsLoaded(t *testing.T) {
	ca, h := svidSetup(t)
	h.Deliver(ca, alice, -time.Minute)
	if svid := h.Identities(t).SVID(alice); svid == nil || svid.Valid(time.Now()) {
		t.Errorf("SVID %+v, want one that is not valid", svid)
	}
}

// TestNotYetValidIsLoaded checks that an SVID that is not valid yet is loaded, because a host may
// start with a clock that is years behind.
func TestNotYetValidIsLoaded(t *testing.T) {
	ca, h := svidSetup(t)
	h.Deliver(ca, alice, time.Hour)
	synctest.Test(t, func(t *testing.T) { // in the bubble it is the year 2000
		if svid := h.Identities(t).SVID(alice); svid == nil || svid.Valid(time.Now()) {
			t.Errorf("SVID %+v, want one that is not valid", svid)
		}
	})
}

func TestNeedWithoutID(t *testing.T) {
	_, h := svidSetup(t)
	m := svidManifest(t, h)
	for request, want := range map[string]string{
		`{}`:                   `need "cert-node": request has no id`,
		`{"id":"alice"}`:       `need "cert-node": request: SPIFFE ID "alice"`,
		`{"id":["spiffe://"]}`: `need "cert-node": request: `,
	} {
		m.Needs[0].Request = []byte(request)
		_, problems := hostdir.LoadSVIDs(h.Layout, m, &hostdir.SVIDSet{})
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), want) {
			t.Errorf("%s: problems %v, want %q", request, problems, want)
		}
	}
}
