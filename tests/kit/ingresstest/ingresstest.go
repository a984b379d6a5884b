// Package ingresstest runs nginx for tests of an ingress, as Debian installs it.
package ingresstest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// Run starts the program args[0] with the other elements of args as its arguments, in the directory
// dir. The program ends when the test ends, or earlier if stop is called.
func Run(t *testing.T, dir string, args ...string) (stop func()) {
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

// Nginx is an nginx server for tests, with all its files in one directory.
type Nginx struct {
	Command []string // program with the arguments that select its configuration
	File    string   // file that flor ingress writes and nginx includes

	dir string
}

// NewNginx writes the files of an nginx server without starting the server.
func NewNginx(t *testing.T) Nginx {
	t.Helper()
	command := program.Require(t, "nginx").Command
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
	return Nginx{
		Command: append(command, "-e", filepath.Join(dir, "error.log"), "-p", dir, "-c", filepath.Join(dir, "nginx.conf")),
		File:    filepath.Join(dir, "conf.d", "florete.conf"), dir: dir,
	}
}

// Start starts nginx. It returns when nginx can be reloaded.
func (n Nginx) Start(t *testing.T) (stop func()) {
	t.Helper()
	end := Run(t, n.dir, n.Command...)
	pid := filepath.Join(n.dir, "nginx.pid")
	kit.Eventually(t, "nginx", func() bool {
		b, err := os.ReadFile(pid)
		return err == nil && len(b) > 1
	})
	return func() {
		end()
		_ = os.Remove(pid)
	}
}
