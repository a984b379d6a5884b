package workload_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/program"
)

// tool builds a program from a module, for a test with software that others have written.
func tool(t *testing.T, module, name string) string {
	t.Helper()
	path, err := program.Tool(module, name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run starts a program that runs until the test ends.
func run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// TestSpiffeHelper checks that spiffe-helper works with the Workload API. It writes certificates to
// files for programs without SPIFFE support, and keeps the files up to date.
func TestSpiffeHelper(t *testing.T) {
	helper := tool(t, "tools/spiffe-helper", "spiffe-helper")
	h := newHost(t, document.Caller{ID: wiki, UIDs: me(), Workload: true}, document.Caller{ID: blog, UIDs: me(), Workload: true})
	h.deliver(wiki, blog)
	h.serve(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "helper.conf")
	err := os.WriteFile(config, fmt.Appendf(nil, `
agent_address = %q
cert_dir = %q
daemon_mode = true
hint = "blog.ursula"
svid_file_name = "svid.pem"
svid_key_file_name = "key.pem"
svid_bundle_file_name = "bundle.pem"
`, h.socket, dir), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	run(t, helper, "-config", config)
	written := func() *trust.SVID {
		svid, _ := os.ReadFile(filepath.Join(dir, "svid.pem"))
		key, _ := os.ReadFile(filepath.Join(dir, "key.pem"))
		s, err := trust.ParseSVID(svid, key, blog)
		if err != nil {
			return nil
		}
		return s
	}
	var roots *trust.Roots
	kit.Eventually(t, "the files are written", func() bool {
		bundle, _ := os.ReadFile(filepath.Join(dir, "bundle.pem"))
		roots, err = trust.NewRoots(blog.TrustDomain(), []string{string(bundle)})
		return err == nil && written() != nil
	})
	first := written()
	if err := first.Check(roots, time.Now()); err != nil {
		t.Error(err)
	}
	h.deliver(blog)
	kit.Eventually(t, "the renewed ones are written", func() bool { s := written(); return s != nil && !s.Chain[0].Equal(first.Chain[0]) })
}

// TestGhostunnel checks that two ghostunnel processes get their certificates from the Workload API.
// They must accept each other's SPIFFE IDs and no others.
func TestGhostunnel(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it compiles ghostunnel, which takes a C compiler")
	}
	ghostunnel := tool(t, "bench/ghostunnel", "ghostunnel")
	h := newHost(t, document.Caller{ID: wiki, UIDs: me(), Workload: true})
	h.deliver(wiki)
	h.serve(t)
	upstream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	go func() {
		for {
			c, err := upstream.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	between, local, other := agenttest.Loopback().String(), agenttest.Loopback().String(), agenttest.Loopback().String()
	run(t, ghostunnel, "server", "--use-workload-api-addr", h.addr, "--listen", between, "--target", upstream.Addr().String(), "--allow-uri", wiki.String())
	run(t, ghostunnel, "client", "--unsafe-listen", "--use-workload-api-addr", h.addr, "--listen", local, "--target", between, "--verify-uri", wiki.String())
	run(t, ghostunnel, "client", "--unsafe-listen", "--use-workload-api-addr", h.addr, "--listen", other, "--target", between, "--verify-uri", db.String())
	echoes := func(addr string) bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // after this time, the test tries again
		if _, err := c.Write([]byte("x")); err != nil {
			return false
		}
		b := make([]byte, 1)
		_, err = io.ReadFull(c, b)
		return err == nil
	}
	kit.Eventually(t, "a byte comes back through both", func() bool { return echoes(local) })
	kit.Eventually(t, "the other one listens", func() bool {
		c, err := net.Dial("tcp", other)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if echoes(other) {
		t.Errorf("who wants %s is let to %s", db, wiki)
	}
	h.deliver(wiki)
	kit.Eventually(t, "a byte comes back after a renewal", func() bool { return echoes(local) })
}
