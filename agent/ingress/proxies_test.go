package ingress

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is one of Debian's: in PATH, or what the variable has, which tests/run sets.
func program(t *testing.T, name, variable string) []string {
	t.Helper()
	if words := strings.Fields(os.Getenv(variable)); len(words) > 0 {
		return words
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("NOT RUN: no %s, neither in PATH nor in %s: on Debian it is in the package %[1]s, which tests/run fetches", name, variable)
	}
	return []string{path}
}

// run starts a program that stop ends, and the end of the test.
func run(t *testing.T, dir string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", args[0], log.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// proxies under test, each with how to start it.
type started struct {
	Proxy
	start func(t *testing.T) (stop func())
}

func newNginx(t *testing.T, http, https int) started {
	t.Helper()
	command := program(t, "nginx", "FLORETE_NGINX")
	dir := t.TempDir()
	temp := ""
	for _, n := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%[1]s;\n", n, dir)
	}
	conf := fmt.Sprintf("daemon off;\npid %s/nginx.pid;\nerror_log %[1]s/error.log;\nevents {}\nhttp {\naccess_log off;\n%s include %[1]s/conf.d/*.conf;\n}\n", dir, temp)
	if os.Geteuid() == 0 {
		conf = "user root;\n" + conf
	}
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	command = append(command, "-e", filepath.Join(dir, "error.log"), "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	n := &Nginx{File: filepath.Join(dir, "conf.d", "florete.conf"), Command: command, HTTP: local(http), HTTPS: local(https)}
	return started{n, func(t *testing.T) func() {
		stop := run(t, dir, command...)
		until(t, "nginx runs", func() bool {
			b, err := os.ReadFile(filepath.Join(dir, "nginx.pid"))
			return err == nil && len(b) > 1
		})
		return func() {
			stop()
			os.Remove(filepath.Join(dir, "nginx.pid"))
		}
	}}
}

func newCaddy(t *testing.T, http, https, admin int) started {
	t.Helper()
	command := program(t, "caddy", "FLORETE_CADDY")
	dir := t.TempDir()
	config := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(config, []byte(`{"admin":{"listen":"`+local(admin)+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Caddy{Admin: local(admin), HTTP: local(http), HTTPS: local(https)}
	return started{c, func(t *testing.T) func() {
		stop := run(t, dir, append(command, "run", "--config", config)...)
		until(t, "caddy runs", func() bool {
			conn, err := net.Dial("tcp", local(admin))
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
		return stop
	}}
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 40 seconds: %s", what)
		}
	}
}
