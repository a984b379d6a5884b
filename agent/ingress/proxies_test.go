package ingress

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/ingresstest"
	"github.com/florete/florete/tests/program"
)

// started is a proxy under test, with the function that starts it.
type started struct {
	Proxy
	start func(t *testing.T) (stop func())
}

func newNginx(t *testing.T, http, https int) started {
	t.Helper()
	n := ingresstest.NewNginx(t)
	return started{&Nginx{File: n.File, Command: n.Command, HTTP: local(http), HTTPS: local(https)}, n.Start}
}

func newCaddy(t *testing.T, http, https int) started {
	t.Helper()
	command := program.Require(t, "caddy").Command
	dir := t.TempDir()
	admin := filepath.Join(dir, "admin.sock")
	config := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(config, []byte(`{"admin":{"listen":"unix/`+admin+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Caddy{Admin: admin, Keys: filepath.Join(dir, "keys"), HTTP: local(http), HTTPS: local(https)}
	return started{c, func(t *testing.T) func() {
		stop := ingresstest.Run(t, dir, append(command, "run", "--config", config)...)
		kit.Eventually(t, "caddy runs", func() bool {
			conn, err := net.Dial("unix", admin)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		return stop
	}}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
