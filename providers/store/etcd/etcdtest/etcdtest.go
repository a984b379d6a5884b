// Package etcdtest runs etcd clusters for tests: members that really are processes, and can be
// killed, stopped and started again.
package etcdtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/florete/florete/providers/store/etcd"
)

// Command is the command line of etcd, its server. FLORETE_ETCD names one that is not in PATH.
func Command(t testing.TB) []string {
	t.Helper()
	if words := strings.Fields(os.Getenv("FLORETE_ETCD")); len(words) > 0 {
		return words
	}
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("NOT RUN: no etcd, neither in PATH nor in FLORETE_ETCD: apt-get install etcd-server")
	}
	return []string{path}
}

// Cluster is one of etcd.
type Cluster struct {
	Members []*Member
	t       testing.TB
}

// Member is one of a cluster.
type Member struct {
	Name, Client, Peer, Dir string

	args []string
	cmd  *exec.Cmd
	log  string
	t    testing.TB
}

// Start starts a cluster of n members, and waits until it has a leader.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	command := Command(t)
	c := &Cluster{t: t}
	var initial []string
	for i := range n {
		m := &Member{t: t, Name: fmt.Sprintf("m%d", i+1), Client: "http://" + free(t), Peer: "http://" + free(t), Dir: t.TempDir()}
		c.Members = append(c.Members, m)
		initial = append(initial, m.Name+"="+m.Peer)
	}
	token := rand.Text()
	for _, m := range c.Members {
		m.log = filepath.Join(m.Dir, "log")
		m.args = append(append([]string{}, command...), "--name", m.Name, "--data-dir", filepath.Join(m.Dir, "data"),
			"--listen-client-urls", m.Client, "--advertise-client-urls", m.Client,
			"--listen-peer-urls", m.Peer, "--initial-advertise-peer-urls", m.Peer,
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "new",
			"--initial-cluster-token", token, "--logger", "zap")
		m.Start()
		t.Cleanup(m.Kill)
	}
	c.Leader()
	return c
}

// Endpoints are those of all members.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Client)
	}
	return all
}

// Open opens an empty store of the cluster.
func (c *Cluster) Open(t testing.TB) *etcd.Store {
	t.Helper()
	return c.Tree(t, rand.Text())
}

// Tree opens a tree of the cluster.
func (c *Cluster) Tree(t testing.TB, tree string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(etcd.Config{Endpoints: c.Endpoints(), Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Leader waits for a leader, and is the one.
func (c *Cluster) Leader() *Member {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, m := range c.Members {
			if m.leads() {
				return m
			}
		}
	}
	for _, m := range c.Members {
		b, _ := os.ReadFile(m.log)
		c.t.Logf("%s: %s", m.Name, b[max(0, len(b)-2000):])
	}
	c.t.Fatal("etcd: no leader within 30 seconds")
	return nil
}

// EndLeases ends all leases, as when no client was heard of for long.
func (c *Cluster) EndLeases(t testing.TB) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all, err := client.Leases(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range all.Leases {
		if _, err := client.Revoke(context.Background(), lease.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// leads is whether the member runs and says that it is the leader.
func (m *Member) leads() bool {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Client}, Logger: zap.NewNop(), MaxUnaryRetries: 1})
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Client)
	return err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId
}

// Start starts the member, which was killed or not started yet.
func (m *Member) Start() {
	m.t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(m.args[0], m.args[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// Kill ends the member as a power loss does, and waits until it has gone.
func (m *Member) Kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// Stop stops the member where it is; its connections stay. Continue lets it go on.
func (m *Member) Stop() { _ = m.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets a stopped member go on.
func (m *Member) Continue() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }

// free is an address that nothing listens on.
func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
