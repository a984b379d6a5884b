package forward_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/program"
)

const nginxConf = `
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr notice;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen unix:%[1]s/sock proxy_protocol;
		listen %[2]s proxy_protocol;
		location / {
			return 200 "$proxy_protocol_addr|$proxy_protocol_server_port|$proxy_protocol_tlv_ssl_cn|$proxy_protocol_tlv_0xd0|$proxy_protocol_tlv_authority|$proxy_protocol_tlv_ssl_version|$proxy_protocol_tlv_ssl_verify";
		}
	}
	server {
		listen %[3]s;
		location / { return 200 "$http_x_forwarded_client_cert|$http_x_forwarded_for"; }
	}
}
`

// TestNginx checks the headers that a real nginx understands and passes on.
func TestNginx(t *testing.T) {
	command := program.Require(t, "nginx").Command
	dir := t.TempDir()
	named, headers := agenttest.Loopback().String(), agenttest.Loopback().String()
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, named, headers), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], "-p", dir, "-c", conf, "-e", "stderr")...)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	kit.Eventually(t, "nginx", func() bool {
		c, err := net.Dial("tcp", headers)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for _, upstream := range []string{named, "unix:" + filepath.Join(dir, "sock")} {
		c := announcing(t, upstream, document.ProxyV2)
		_, port, _ := net.SplitHostPort(c.Publish.Listen[0])
		want := fmt.Sprintf("127.0.0.1|%s|%s|%[2]s|outline.demo.flor.rete|TLSv1.3|0", port, alice)
		got, err := get(c.Local)
		// The caller's forwarder has an address of its own on loopback.
		if _, rest, ok := strings.Cut(got, "|"); err != nil || !ok || !strings.HasPrefix(got, "127.") || rest != want[len("127.0.0.1|"):] {
			t.Errorf("%s: got %q, %v, want %q", upstream, got, err, want)
		}
	}
	c := announcing(t, headers, document.HTTPHeaders)
	got, err := get(c.Local)
	if err != nil || !strings.Contains(got, ";URI="+alice.String()+"|127.") {
		t.Errorf("got %q, %v", got, err)
	}
}
