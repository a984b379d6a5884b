package git

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/providers/serveraccount"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// stop ends the server, when all tests have.
var stop = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	stop()
	os.Exit(code)
}

// soft is a Soft Serve that runs.
type soft struct {
	dir, ssh, http string // where its credential is, and its addresses
	admin          *ssh.Client
	err            error
}

// softServer is built from its module. It has the private repositories infra and secrets.
var softServer = sync.OnceValue(func() (s soft) {
	s.err = s.start()
	return s
})

func (s *soft) start() error {
	path, err := program.Tool("tools/soft-serve", "soft")
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "florete-soft-"); err != nil {
		return err
	}
	key := kit.WriteHostKey(filepath.Join(s.dir, "forge"))
	s.ssh, s.http = kit.Address(), kit.Address()
	b, err := os.ReadFile(filepath.Join(s.dir, "forge"))
	if err != nil {
		return err
	}
	admin, err := ssh.ParsePrivateKey(b)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, "serve")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SOFT_SERVE_DATA_PATH=" + filepath.Join(s.dir, "data"), "SOFT_SERVE_GIT_LISTEN_ADDR=" + kit.Address(),
		"SOFT_SERVE_SSH_LISTEN_ADDR=" + s.ssh, "SOFT_SERVE_HTTP_LISTEN_ADDR=" + s.http, "SOFT_SERVE_STATS_LISTEN_ADDR=" + kit.Address(),
		"SOFT_SERVE_HTTP_PUBLIC_URL=http://" + s.http, "SOFT_SERVE_INITIAL_ADMIN_KEYS=" + kit.Authorized(key),
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		os.RemoveAll(s.dir)
	}
	if err := kit.Poll(context.Background(), func() (err error) {
		s.admin, err = ssh.Dial("tcp", s.ssh, &ssh.ClientConfig{User: "admin", Auth: []ssh.AuthMethod{ssh.PublicKeys(admin)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()})
		return err
	}); err != nil {
		b, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w\n%s", err, b)
	}
	for _, name := range []string{"infra", "secrets"} {
		if _, err := run(s.admin, "repo", "create", "--private", name); err != nil {
			return err
		}
	}
	return nil
}

// softAt is Soft Serve as a policy has it, with the directory of the provider's key.
func softAt(t *testing.T) (serveraccount.Server, string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: nobody clones from Soft Serve: no git in PATH, on Debian it is in the package git, which tests/run installs")
	}
	s := softServer()
	if s.err != nil {
		t.Fatal(s.err)
	}
	return at(softServeKind, s.ssh, s.http), s.dir
}

func at(kind, address, http string) serveraccount.Server {
	host, port, _ := net.SplitHostPort(http)
	f := serveraccount.Server{Kind: kind, Address: address, User: "admin", Host: host}
	fmt.Sscan(port, &f.Port)
	return f
}
