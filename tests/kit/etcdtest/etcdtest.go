// Package etcdtest runs etcd clusters for tests. The members are real processes, which a test can
// kill, stop and start again.
package etcdtest

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/store/etcd"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// valid is the lifetime of certificates. It is longer than any test takes.
const valid = 7 * 24 * time.Hour

// Cluster is an etcd cluster that runs for a test.
type Cluster struct {
	Members []*Member
	ca      *ca.Authority // of its certificates; nil without TLS
	dir     string        // with those of a client
	t       testing.TB
}

// Member is a member of an etcd cluster: one etcd process.
type Member struct {
	Name, Client, Peer, Dir string

	args []string
	tls  *tls.Config
	cmd  *exec.Cmd
	log  string
	t    testing.TB
}

// Start starts an etcd cluster with n members for a test, and returns when each member knows the
// leader. If etcd is not installed, the test is skipped. The cluster stops at the end of the test.
func Start(t testing.TB, n int) *Cluster {
	t.Helper()
	return start(&Cluster{t: t}, n, "http://")
}

// StartTLS is like Start, but members and clients use TLS. Their certificates come from a CA such
// as an operator creates for a state store.
func StartTLS(t testing.TB, n int) *Cluster {
	t.Helper()
	program.Require(t, "etcd")
	a, err := ca.NewStore(kit.Domain, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, ca: a}
	c.dir = c.Certificates("tests")
	return start(c, n, "https://")
}

// Certificates returns a directory with the files that a host needs to connect to a cluster of
// StartTLS: the certificate of the CA, and a certificate for the given host with its key.
func (c *Cluster) Certificates(host string) string {
	c.t.Helper()
	dir := c.t.TempDir()
	c.pair(dir, "client", func(k crypto.PublicKey) (*x509.Certificate, error) {
		return c.ca.IssueClient(k, host, time.Now().Add(valid), time.Now())
	})
	return dir
}

// pair writes a key, its certificate, and the certificate of the CA to a directory.
func (c *Cluster) pair(dir, name string, issue func(crypto.PublicKey) (*x509.Certificate, error)) {
	c.t.Helper()
	key := kit.NewKey()
	crt, err := issue(key.Public())
	err = errors.Join(err, ca.SaveKey(filepath.Join(dir, name+".key"), key))
	if err == nil {
		err = errors.Join(ca.Save(filepath.Join(dir, name+".crt"), ca.EncodeCertificates(crt)),
			ca.Save(filepath.Join(dir, "ca.crt"), ca.EncodeCertificates(c.ca.Certificate)))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// tls returns the TLS configuration of a client.
func (c *Cluster) tls() *tls.Config {
	if c.ca == nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "client.crt"), filepath.Join(c.dir, "client.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.Certificate)
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

// secure returns the flags for a member that uses certificates. They are the same as in the unit of
// a member.
func (c *Cluster) secure(m *Member) []string {
	if c.ca == nil {
		return nil
	}
	c.pair(m.Dir, "member", func(k crypto.PublicKey) (*x509.Certificate, error) {
		return c.ca.IssueMember(k, []string{"127.0.0.1"}, time.Now().Add(valid), time.Now())
	})
	file := func(name string) string { return filepath.Join(m.Dir, name) }
	return []string{
		"--cert-file", file("member.crt"), "--key-file", file("member.key"), "--trusted-ca-file", file("ca.crt"), "--client-cert-auth",
		"--peer-cert-file", file("member.crt"), "--peer-key-file", file("member.key"), "--peer-trusted-ca-file", file("ca.crt"), "--peer-client-cert-auth",
		"--peer-cert-allowed-cn", ca.StoreMember,
	}
}

func start(c *Cluster, n int, scheme string) *Cluster {
	t := c.t
	t.Helper()
	command := program.Require(t, "etcd").Command
	var initial []string
	for i := range n {
		m := &Member{t: t, Name: fmt.Sprintf("m%d", i+1), Client: scheme + kit.Address(), Peer: scheme + kit.Address(), Dir: t.TempDir(), tls: c.tls()}
		c.Members = append(c.Members, m)
		initial = append(initial, m.Name+"="+m.Peer)
	}
	token := rand.Text()
	for _, m := range c.Members {
		m.log = filepath.Join(m.Dir, "log")
		m.args = append(append([]string{}, command...), "--name", m.Name, "--data-dir", filepath.Join(m.Dir, "data"),
			"--listen-client-urls", m.Client, "--advertise-client-urls", m.Client,
			"--listen-peer-urls", m.Peer, "--initial-advertise-peer-urls", m.Peer,
			"--initial-cluster-token", token, "--logger", "zap")
		m.args = append(m.args, c.secure(m)...)
		m.Start("ETCD_INITIAL_CLUSTER=" + strings.Join(initial, ","))
		t.Cleanup(m.Kill)
	}
	for _, m := range c.Members { // all, for a test may take the others away
		c.wait(m.Name+" knows no leader", func() bool { s := m.status(); return s != nil && s.Leader != 0 })
	}
	return c
}

// Endpoints returns the addresses at which clients reach the members.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Client)
	}
	return all
}

// Open opens a store on the cluster that contains no keys yet.
func (c *Cluster) Open(t testing.TB) *etcd.Store {
	t.Helper()
	return c.Tree(t, rand.Text())
}

// Tree opens a store for one tree in the cluster, and closes it at the end of the test. A tree
// consists of the keys with a common prefix.
func (c *Cluster) Tree(t testing.TB, tree string) *etcd.Store {
	t.Helper()
	s, err := etcd.Open(etcd.Config{Endpoints: c.Endpoints(), TLS: c.tls(), Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Leader waits until the cluster has a leader, and returns that member.
func (c *Cluster) Leader() (leader *Member) {
	c.t.Helper()
	c.wait("no leader", func() bool {
		i := slices.IndexFunc(c.Members, func(m *Member) bool {
			s := m.status()
			return s != nil && s.Leader != 0 && s.Leader == s.Header.MemberId
		})
		if i >= 0 {
			leader = c.Members[i]
		}
		return i >= 0
	})
	return leader
}

func (c *Cluster) wait(otherwise string, until func() bool) {
	c.t.Helper()
	if kit.Poll(context.Background(), func() error {
		if !until() {
			return errors.ErrUnsupported
		}
		return nil
	}) == nil {
		return
	}
	for _, m := range c.Members {
		b, _ := os.ReadFile(m.log)
		c.t.Logf("%s: %s", m.Name, b[max(0, len(b)-2000):])
	}
	c.t.Fatalf("etcd: waited in vain: %s", otherwise)
}

// Compact makes the cluster forget the changes up to the given revision. A watch that begins at an
// earlier revision then fails with store.ErrCompacted.
func (c *Cluster) Compact(ctx context.Context, revision int64) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), TLS: c.tls(), Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Compact(ctx, revision+1) // which is kept
	return err
}

// EndLeases ends all leases in the cluster, as if their clients had stopped renewing them.
func (c *Cluster) EndLeases(t testing.TB) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), TLS: c.tls(), Logger: zap.NewNop()})
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

// status returns the member's status, or nil if it does not answer.
func (m *Member) status() *clientv3.StatusResponse {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Client}, TLS: m.tls, Logger: zap.NewNop(), MaxUnaryRetries: 1})
	if err != nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Client)
	if err != nil {
		return nil
	}
	return status
}

// Start starts a member that is not running. The process gets the environment of the test and the
// given variables.
func (m *Member) Start(environment ...string) {
	m.t.Helper()
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	m.cmd = exec.Command(m.args[0], m.args[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.Env = append(os.Environ(), environment...)
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// Kill kills the member with SIGKILL, as a power loss would, and waits until it has ended.
func (m *Member) Kill() {
	if m.cmd != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		m.cmd = nil
	}
}

// KillMajority kills all members but the last. Before that, it waits until the last has applied
// every committed change, for the others alone may have done so.
func (c *Cluster) KillMajority() {
	c.t.Helper()
	rest, last := c.Members[:len(c.Members)-1], c.Members[len(c.Members)-1]
	c.wait(last.Name+" is behind", func() bool {
		leader, s := c.Leader().status(), last.status()
		return leader != nil && s != nil && s.RaftAppliedIndex >= leader.RaftIndex
	})
	for _, m := range rest {
		m.Kill()
	}
}

// Lose deletes the data of a member that is not running, as if the member had lost its disk.
func (m *Member) Lose() {
	m.t.Helper()
	if err := os.RemoveAll(filepath.Join(m.Dir, "data")); err != nil {
		m.t.Fatal(err)
	}
}

// Ended waits until the process of the member has ended by itself, and returns the last lines of
// its log. If this takes longer than kit.Patience, the test fails.
func (m *Member) Ended() string {
	m.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- m.cmd.Wait() }()
	select {
	case <-ended:
		m.cmd = nil
	case <-time.After(kit.Patience):
		m.t.Fatalf("etcd: waited in vain for the end of %s", m.Name)
	}
	b, _ := os.ReadFile(m.log)
	return string(b[max(0, len(b)-2000):])
}

// Stop suspends the process of the member, which then no longer answers. Its connections stay open.
// Call Continue to resume it.
func (m *Member) Stop() { _ = m.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue resumes a member that was suspended by Stop.
func (m *Member) Continue() { _ = m.cmd.Process.Signal(syscall.SIGCONT) }
