package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// florctl runs florctl as Dora. It reaches the provider through a proxy that connects to the
// forwarder of host c as her account.
func (c *cluster) florctl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return c.florctlLied(t, nil, args...)
}

// florctlLied runs florctl as Dora, while the provider lies. The function lie changes the
// provider's responses, as an attacker with the account of the provider's process could.
func (c *cluster) florctlLied(t *testing.T, lie func(answer *http.Response) error, args ...string) (string, error) {
	t.Helper()
	at := c.listener(t, spiffe.ControlService)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "http", p.In.Host, p.In.Host
		},
		ModifyResponse: lie,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (conn net.Conn, err error) {
			agenttest.As(t, uidDora, func() { conn, err = net.Dial("tcp", at) })
			return conn, err
		}},
	})
	defer proxy.Close()
	socks := kit.SOCKSTo(proxy.Listener.Addr().String())
	defer socks.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.Bin, "florctl"), args...)
	cmd.Dir, cmd.Env = c.Path("cluster"), append(os.Environ(), "HTTP_PROXY=socks5h://"+socks.Addr().String())
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("florctl %s: %w: %s", strings.Join(args, " "), err, problem.String())
	}
	return string(out), err
}

// newToken creates a join token for host h, as the operator Dora.
func (c *cluster) newToken(t *testing.T) (string, error) {
	out, err := c.florctl(t, "join", "token", "create", "--host", "h")
	return strings.TrimSpace(out), err
}

func (c *cluster) endToken(t *testing.T) error {
	text, err := c.newToken(t)
	if err != nil {
		return err
	}
	token, err := hostapi.ParseJoinToken(text)
	if err == nil {
		_, err = c.florctl(t, "join", "token", "revoke", hostapi.TokenID(token.Public()))
	}
	return err
}

// rejectJoin makes a device ask to join as host h, and rejects the request as Dora.
func (c *cluster) rejectJoin(t *testing.T) error {
	text, err := c.newToken(t)
	if err != nil {
		return err
	}
	token, err := hostapi.ParseJoinToken(text)
	if err != nil {
		return err
	}
	if _, err := c.device(t, "h", "config", kit.NewHostKey()).Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &token); err != nil {
		return err
	}
	_, err = c.florctl(t, "join", "reject", "h")
	return err
}

// publishWaves publishes the cluster with a rollout. It returns the serial of the version that was
// served before.
func (c *cluster) publishWaves(t *testing.T, key string) (before string, err error) {
	out, err := c.florctl(t, "versions", "--json")
	if err != nil {
		return "", err
	}
	var versions []struct{ Serial int64 }
	if err := json.Unmarshal([]byte(out), &versions); err != nil || len(versions) == 0 {
		return "", fmt.Errorf("%s: %w", out, err)
	}
	file := c.Path("cluster", "facts.json")
	was := kit.ReadFile(file)
	var facts map[string]any
	if err := json.Unmarshal(was, &facts); err != nil {
		return "", err
	}
	facts["rollout"] = map[string]any{"healthy": 20, "waves": []any{map[string]any{"percent": 50}, map[string]any{"rest": true}}}
	if err := os.WriteFile(file, kit.JSON(facts), 0o644); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = os.WriteFile(file, was, 0o644) })
	if err := c.Commit(t.Context(), time.Now(), "waves", "waves"); err != nil {
		return "", err
	}
	_, err = c.florctl(t, "publish", "--key", key)
	return fmt.Sprint(versions[0].Serial), err
}
