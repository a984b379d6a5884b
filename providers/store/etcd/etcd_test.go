package etcd_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
	"github.com/florete/florete/tests/kit/storetest"
)

func TestConformance(t *testing.T) {
	c := etcdtest.Start(t, 3)
	storetest.Run(t, func(t *testing.T) store.Store { return compacted{c.Open(t), c} })
}

// compacted is a store of a cluster that forgets on demand, where etcd does as its flags say.
type compacted struct {
	*etcd.Store
	*etcdtest.Cluster
}

// TestCertificates checks that members and clients authenticate with certificates of the operator.
// A client cannot act as a member, and a caller without such a certificate gets nothing.
func TestCertificates(t *testing.T) {
	c := etcdtest.StartTLS(t, 3)
	if _, err := c.Open(t).Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", nil)}}); err != nil {
		t.Fatal(err)
	}
	other := kit.NewCA()
	for name, config := range map[string]*tls.Config{
		"nothing": {InsecureSkipVerify: true},
		"another": {InsecureSkipVerify: true, Certificates: []tls.Certificate{*other.Issue(kit.ID("node/forge"), time.Hour)}},
	} {
		s, err := etcd.Open(etcd.Config{Endpoints: c.Endpoints(), TLS: config, Tree: "x"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Get(t.Context(), "a"); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("with %s: got %v, want no answer", name, err)
		}
	}
	dir := c.Certificates("forge")
	pair, err := tls.LoadX509KeyPair(dir+"/client.crt", dir+"/client.key")
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: kit.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}}
	if r, err := client.Get(c.Members[0].Peer + "/members"); err == nil {
		t.Errorf("a client is answered as a member: %s", r.Status)
	}
}

// A client whose session has ended, for example after a long sleep, begins a new one.
func TestSessionEnds(t *testing.T) {
	c := etcdtest.Start(t, 1)
	s := c.Open(t)
	for name, ops := range map[string][]store.Op{
		"put": {store.Put("a", nil)}, "delete": {store.Delete("b")}, "both": {store.Put("a", nil), store.Delete("b")},
	} {
		for _, key := range []string{"a", "b"} {
			if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, nil)}}); err != nil {
				t.Fatal(err)
			}
		}
		c.EndLeases(t)
		if _, err := s.Commit(t.Context(), store.Txn{Then: ops}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.EndLeases(t)
		if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{{Key: "c", Lease: 4711}}}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: a lease that is not there: %v", name, err)
		}
	}
	if entries, _, err := s.List(t.Context(), ""); err != nil || len(entries) != 1 && len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// TestLimits checks that transactions beyond the limits of etcd are refused before, with a remedy.
func TestLimits(t *testing.T) {
	s := etcdtest.Start(t, 1).Open(t)
	var many store.Txn
	for i := range 121 {
		many.Then = append(many.Then, store.Put(strings.Repeat("k", i+1), nil))
	}
	large := store.Txn{Then: []store.Op{store.Put("a", make([]byte, 1<<20)), store.Put("b", make([]byte, 1<<20))}}
	for want, txn := range map[string]store.Txn{"121 changes": many, "2048 KiB": large} {
		if _, err := s.Commit(t.Context(), txn); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	if entries, _, err := s.List(t.Context(), ""); err != nil || len(entries) > 0 {
		t.Errorf("left %d keys, %v", len(entries), err)
	}
	// Many keys of a list, and the largest transactions.
	for i := range 13 {
		var txn store.Txn
		for j := range store.MaxOps {
			key := strings.Repeat("x", i) + "/" + strings.Repeat("y", j)
			txn.If = append(txn.If, store.Cond{Key: key})
			txn.Then = append(txn.Then, store.Put(key, make([]byte, store.MaxBytes/store.MaxOps)))
		}
		if _, err := s.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	if entries, _, err := s.List(t.Context(), ""); err != nil || len(entries) != 1300 {
		t.Errorf("got %d keys, %v, want 1300", len(entries), err)
	}
}
