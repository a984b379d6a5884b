package etcd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/etcdtest"
)

// TestMain is a client that commits until it is killed, when a test starts it so.
func TestMain(m *testing.M) {
	if endpoints := os.Getenv("FLORETE_TEST_COMMITS"); endpoints != "" {
		commits(strings.Fields(endpoints))
	}
	os.Exit(m.Run())
}

// commits prints the number of each transaction that was acknowledged.
func commits(endpoints []string) {
	s, err := etcd.Open(etcd.Config{Endpoints: endpoints, Tree: "killed"})
	if err != nil {
		panic(err)
	}
	for {
		n, at := 0, int64(0)
		e, err := s.Get(context.Background(), "a")
		if err == nil {
			n, _ = strconv.Atoi(string(e.Value))
			at = e.Modified
		} else if !errors.Is(err, store.ErrNotFound) {
			panic(err)
		}
		next := []byte(strconv.Itoa(n + 1))
		if _, err := s.Commit(context.Background(), store.Txn{If: []store.Cond{{Key: "a", Modified: at}}, Then: []store.Op{store.Put("a", next), store.Put("b", next)}}); err != nil {
			panic(err)
		}
		fmt.Println(n + 1)
	}
}

// TestKilledClient checks that all acknowledged transactions of a killed client are in the store,
// and that no transaction is there in part.
func TestKilledClient(t *testing.T) {
	c := etcdtest.Start(t, 1)
	s := c.Tree(t, "killed")
	for i := range 10 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "FLORETE_TEST_COMMITS="+strings.Join(c.Endpoints(), " "))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := bufio.NewScanner(out)
		last := ""
		for range 3 {
			told.Scan()
			last = told.Text()
		}
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		_ = cmd.Process.Kill()
		for told.Scan() {
			last = told.Text()
		}
		_ = cmd.Wait()
		entries, _, err := s.List(t.Context(), "")
		if err != nil || len(entries) != 2 {
			t.Fatalf("got %v, %v", entries, err)
		}
		a, b := string(entries[0].Value), string(entries[1].Value)
		n, _ := strconv.Atoi(a)
		if acknowledged, _ := strconv.Atoi(last); a != b || n != acknowledged && n != acknowledged+1 {
			t.Errorf("told %s, found %s and %s", last, a, b)
		}
	}
}

// TestLeaderKilled checks that writes continue while the leader is away.
func TestLeaderKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	c := etcdtest.Start(t, 3)
	s := c.Open(t)
	put := func(i int) error {
		_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", []byte(strconv.Itoa(i)))}})
		return err
	}
	for name, fault := range map[string]func(*etcdtest.Member) (repair func()){
		"killed":  func(m *etcdtest.Member) func() { m.Kill(); return func() { m.Start() } },
		"stopped": func(m *etcdtest.Member) func() { m.Stop(); return m.Continue },
	} {
		t.Run(name, func(t *testing.T) {
			if err := put(0); err != nil {
				t.Fatal(err)
			}
			repair := fault(c.Leader())
			defer repair()
			began, i := time.Now(), 0
			kit.Succeeds(t, "a write", func() error {
				i++
				err := put(i)
				if err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Fatal(err)
				}
				return err
			})
			t.Logf("written again after %s", time.Since(began))
		})
	}
}

// TestNoMajority checks that without a majority no request is answered, and that the store recovers
// by itself.
func TestNoMajority(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	c := etcdtest.Start(t, 3)
	s := c.Open(t)
	put := store.Txn{Then: []store.Op{store.Put("a", []byte("1"))}}
	if _, err := s.Commit(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	c.KillMajority()
	for name, request := range map[string]func() error{
		"get":    func() error { _, err := s.Get(t.Context(), "a"); return err },
		"list":   func() error { _, _, err := s.List(t.Context(), ""); return err },
		"commit": func() error { _, err := s.Commit(t.Context(), put); return err },
		"lease":  func() error { _, err := s.Lease(t.Context(), time.Minute); return err },
	} {
		if err := request(); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s without a majority: got %v, want ErrUnavailable", name, err)
		}
	}
	local := store.Local(s)
	if e, err := local.Get(t.Context(), "a"); err != nil || string(e.Value) != "1" {
		t.Errorf("what may be old: got %q, %v", e.Value, err)
	}
	if _, err := local.Get(t.Context(), "b"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is not there: got %v, want ErrNotFound", err)
	}
	if all, _, err := local.List(t.Context(), ""); err != nil || len(all) != 1 {
		t.Errorf("list of what may be old: got %v, %v", all, err)
	}
	if all, err := local.Page(t.Context(), "", "a", 5); err != nil || len(all) != 0 {
		t.Errorf("page of what may be old: got %v, %v", all, err)
	}
	if _, err := local.Commit(t.Context(), put); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("commit to what may be old: got %v, want ErrUnavailable", err)
	}
	c.Members[0].Start()
	kit.Succeeds(t, "a write with a majority again", func() error {
		_, err := s.Commit(t.Context(), put)
		return err
	})
}

// TestFull checks that a store that has reached its quota can be read, and that refused writes name
// the reason.
func TestFull(t *testing.T) {
	c := etcdtest.Start(t, 1)
	c.Members[0].Kill()
	c.Members[0].Start("ETCD_QUOTA_BACKEND_BYTES=4194304")
	s := c.Tree(t, "full")
	err := error(nil)
	for i := 0; err == nil && i < 100; i++ {
		_, err = s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(strconv.Itoa(i), make([]byte, store.MaxBytes))}})
	}
	if !errors.Is(err, store.ErrFull) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want ErrFull", err)
	}
	if _, err := s.Get(t.Context(), "0"); err != nil {
		t.Error(err)
	}
	if _, err := c.Tree(t, "full").Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("x", nil)}}); !errors.Is(err, store.ErrFull) {
		t.Errorf("another client: got %v, want ErrFull", err)
	}
}

// TestLostAnswers checks that a commit whose answer is lost is made exactly once, with or without
// conditions, and that its revision is known.
func TestLostAnswers(t *testing.T) {
	c := etcdtest.Start(t, 1)
	p := newLossy(t, c.Members[0].Client)
	s, err := etcd.Open(etcd.Config{Endpoints: []string{p.address}, Tree: "lost"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("a", []byte("0"))}})
	if err != nil {
		t.Fatal(err)
	}
	first, seen := at, map[string]int{}
	for i := range 20 {
		txn := store.Txn{Then: []store.Op{store.Put("a", []byte(strconv.Itoa(i+1)))}}
		if i%2 == 0 {
			txn.If = []store.Cond{{Key: "a", Modified: at}}
		}
		p.lose.Store(true)
		if at, err = s.Commit(t.Context(), txn); err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if e, err := s.Get(t.Context(), "a"); err != nil || e.Modified != at {
			t.Fatalf("commit %d returned revision %d, the key has %d, %v", i, at, e.Modified, err)
		}
	}
	if lost := p.lost.Load(); lost < 10 {
		t.Fatalf("%d answers were lost, want some", lost)
	}
	for e, err := range s.Watch(t.Context(), "a", first) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[string(e.Value)]++; seen[string(e.Value)] > 1 {
			t.Fatalf("the write of %s was made twice", e.Value)
		}
		if e.Modified == at {
			break
		}
	}
}

// lossy passes on what clients send, and once it is told to lose what comes back and closes the
// connection.
type lossy struct {
	address string
	lose    atomic.Bool
	lost    atomic.Int64
}

func newLossy(t *testing.T, to string) *lossy {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &lossy{address: "http://" + l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", u.Host)
			if err != nil {
				client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client); server.Close() }()
			go p.back(client, server)
		}
	}()
	return p
}

func (p *lossy) back(client, server net.Conn) {
	defer client.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		if n > 50 && p.lose.CompareAndSwap(true, false) { // no ping, an answer
			p.lost.Add(1)
			return
		}
		if _, writing := client.Write(b[:n]); err != nil || writing != nil {
			return
		}
	}
}
