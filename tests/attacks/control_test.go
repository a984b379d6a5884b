package attacks

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// controlSocket returns the path of the socket to which the forwarder of host p connects operators.
// The path depends on the instance.
func (c *cluster) controlSocket() string {
	return filepath.Join("/run", c.instance.Unit("provider-config"), "control.sock")
}

// controlDir creates the directory of the control socket, as a systemd unit does. The group of the
// directory is not a group of this process, which runs as root.
func (c *cluster) controlDir() error {
	if os.Getuid() != 0 {
		return nil // the table does not run
	}
	dir := filepath.Dir(c.controlSocket())
	return errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, -1, uidStranger), os.Chmod(dir, 0o755|os.ModeSetgid))
}

// operate sends a request to the config provider on host p, from an account of host c.
func (c *cluster) operate(t *testing.T, uid uint32, request string, headers ...string) (string, error) {
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Host: ") }) {
		headers = append([]string{"Host: florete-control.p.demo.flor.rete"}, headers...)
	}
	text := fmt.Sprintf("%s HTTP/1.1\r\nConnection: close\r\n%s\r\n\r\n", request, strings.Join(headers, "\r\n"))
	return c.sayAs(t, uid, spiffe.ControlService, text)
}

// TestControl attacks the config provider on host p as identities that are not operators.
func TestControl(t *testing.T) {
	const as = "can run processes of another user"
	t.Run("dora herself is let through", func(t *testing.T) {
		agenttest.Root(t, as)
		c := start(t)
		kit.Succeeds(t, "an answer", func() error {
			answer, err := c.operate(t, uidDora, "GET /v1/versions")
			if !strings.HasPrefix(answer, "HTTP/1.1 200") {
				return fmt.Errorf("got %q, %w", answer, err)
			}
			return nil
		})
	})
	// refused returns an attack that sends a request, as an account of host c.
	refused := func(uid uint32, request string, headers ...string) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			answer, err := c.operate(t, uid, request, headers...)
			if err == nil && !strings.HasPrefix(answer, "HTTP/1.1 200") {
				err = errors.New(answer)
			}
			return err
		}
	}
	const post = "POST /v1/publish"
	denied := func(user, code string) local.Decision {
		return local.Decision{Caller: "spiffe://demo.flor/user/" + user, Kind: "control", Decision: "denied", Code: code}
	}
	run(t, []attack{
		{
			name: "a user without the group", root: as,
			try:     refused(uidBob, "GET /v1/versions"),
			refusal: "reset",
		},
		{
			name: "a user without the group past the own forwarder",
			try: func(t *testing.T, c *cluster) error {
				target, err := spiffe.NewID("demo.flor", spiffe.KindService, "p", spiffe.ControlService)
				if err != nil {
					return err
				}
				return local.Knock(t.Context(), c.p.Manifest.Forwarder.Listen[0], target, c.svid(t, c.c, "cert-user-bob"))
			},
			refusal: "Application error 0x",
		},
		{
			name: "a reader who publishes", root: as,
			try:     refused(uidErin, post, "Content-Length: 0"),
			refusal: "user/erin may read here, want write", row: denied("erin", "not-granted"),
		},
		{
			name: "a reader who claims to be dora", root: as,
			try:     refused(uidErin, post, "Content-Length: 0", "X-Forwarded-Client-Cert: URI=spiffe://demo.flor/user/dora"),
			refusal: "user/erin may read here, want write", row: denied("erin", "not-granted"),
		},
		{
			name: "a page of another origin in an operator's browser", root: as,
			try:     refused(uidDora, post, "Content-Length: 0", "Origin: http://evil.example", "Sec-Fetch-Site: cross-site"),
			refusal: "403 Forbidden", row: denied("dora", "untrusted"),
		},
		{
			name: "a page of another name for the same address", root: as,
			try:     refused(uidDora, "GET /v1/versions", "Host: evil.example"),
			refusal: "403 Forbidden", row: denied("dora", "untrusted"),
		},
		{
			name: "another account of p at the socket", root: as,
			try: func(t *testing.T, c *cluster) (err error) {
				agenttest.As(t, uidStranger, func() {
					var conn net.Conn
					if conn, err = net.Dial("unix", c.controlSocket()); err == nil {
						conn.Close()
					}
				})
				return err
			},
			refusal: "permission denied",
		},
	})
}
