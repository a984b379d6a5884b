package attacks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/tests/kit"
)

// asOperator is the reason for skipping the attacks of this file if the test does not run as root.
// They run florctl as the account of the operator Dora.
const asOperator = "can run processes of another user"

// answering returns a function that changes the provider's JSON responses to requests for a path,
// so that the provider lies.
func answering[V any](path string, lie func(v *V)) func(*http.Response) error {
	return func(answer *http.Response) error {
		if answer.Request.Method != http.MethodGet || answer.Request.URL.Path != path || answer.StatusCode != http.StatusOK {
			return nil
		}
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		var v V
		if err := json.Unmarshal(b, &v); err != nil {
			return err
		}
		lie(&v)
		return instead(answer, kit.JSON(v))
	}
}

func instead(answer *http.Response, body []byte) error {
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// TestAnswers attacks operators with a config provider whose responses are lies. florctl must
// notice each lie and refuse the response.
func TestAnswers(t *testing.T) {
	c := start(t)
	key := c.Path("operator", "signing.key")
	thief := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(kit.NewHostKey().PublicKey())))
	// approving makes a device ask to join as host h, and Dora approve it. The provider lies about
	// the key of the device.
	approving := func(lie func(map[string]any), args ...string) func(t *testing.T, c *cluster) error {
		return func(t *testing.T, c *cluster) error {
			device := kit.NewHostKey()
			token := c.token(t, "h", 1, time.Hour, false)
			if _, err := c.device(t, "h", "config", device).Join(t.Context(), hostreport.Facts{Capabilities: []string{}}, &token); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if _, err := c.florctl(t, "join", "reject", "h"); err != nil {
					t.Error(err)
				}
			}()
			for i, a := range args {
				if a == "GENUINE" {
					args[i] = ssh.FingerprintSHA256(device.PublicKey())
				}
			}
			_, err := c.florctlLied(t, answering("/v1/joins", func(v *struct {
				Joins []map[string]any `json:"joins"`
			}) {
				for _, r := range v.Joins {
					r["fingerprint"] = ssh.FingerprintSHA256(device.PublicKey())
					lie(r)
				}
			}), append([]string{"join", "approve", "h", "--key", key}, args...)...)
			if r := c.requested(t, "h"); err == nil || r.State != hostapi.JoinPending {
				t.Errorf("%s, %v", r.State, err)
			}
			return err
		}
	}
	swap := func(r map[string]any) { r["device"] = thief }
	run(t, []attack{
		{
			name: "a provider swaps the key of the device that is approved", root: asOperator,
			try: approving(swap, "--device", "GENUINE"), refusal: "nothing is approved",
		},
		{
			name: "a provider swaps the key and nobody compares it", root: asOperator,
			try: approving(swap), refusal: "no terminal to confirm it at: nothing is approved",
		},
		{
			name: "a provider hides another key behind the genuine one", root: asOperator,
			try: approving(func(r map[string]any) { r["device"] = r["device"].(string) + "\n" + thief }, "--device", "GENUINE"), refusal: "found more than a key",
		},
		{
			name: "a provider steers the operator's terminal", root: asOperator, refusal: "··[2J",
			try: func(t *testing.T, c *cluster) error {
				out, err := c.florctlLied(t, answering("/v1/tokens", func(v *map[string]any) {
					(*v)["tokens"] = []map[string]any{{"id": strings.Repeat("0", 64), "hosts": "\u009b\x1b[2J\u202e", "uses": 1, "left": 1, "by": "x\ny", "until": 1, "created": 1}}
				}), "join", "token", "list")
				if err == nil && !strings.ContainsAny(out, "\x1b\u009b\u202e") && strings.Count(out, "\n") == 2 {
					err = errors.New(out)
				}
				return err
			},
		},
		{
			name: "a provider answers with another version", root: asOperator, try: func(t *testing.T, c *cluster) error { return c.anotherVersion(t) },
			refusal: "the provider answers with version",
		},
		{
			name: "a provider hides the list that revokes its host", root: asOperator, try: func(t *testing.T, c *cluster) error { return c.hiddenList(t) },
			refusal: "SSH host key SHA256:hidden is revoked",
		},
	})
}

// anotherVersion makes Dora roll back to a version, while the provider claims that a newer version
// exists.
func (c *cluster) anotherVersion(t *testing.T) error {
	out, err := c.florctl(t, "versions", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var versions []map[string]any
	if err := json.Unmarshal([]byte(out), &versions); err != nil || len(versions) == 0 {
		t.Fatalf("%s: %v", out, err)
	}
	newest := int64(versions[0]["serial"].(float64))
	var export []byte
	path := fmt.Sprintf("/v1/versions/%d", newest)
	if _, err := c.florctlLied(t, func(answer *http.Response) (err error) {
		if answer.Request.URL.Path == path {
			if export, err = io.ReadAll(answer.Body); err == nil {
				err = instead(answer, export)
			}
		}
		return err
	}, "diff", fmt.Sprint(newest), fmt.Sprint(newest)); err != nil {
		t.Fatal(err)
	}
	more := answering("/v1/versions", func(v *struct {
		Versions []map[string]any `json:"versions"`
	}) {
		next := maps.Clone(v.Versions[0])
		next["serial"] = newest + 1
		v.Versions = append([]map[string]any{next}, v.Versions...)
	})
	_, err = c.florctlLied(t, func(answer *http.Response) error {
		if answer.Request.URL.Path == fmt.Sprintf("/v1/versions/%d", newest+1) {
			answer.StatusCode, answer.Status = http.StatusOK, "200 OK"
			return instead(answer, export)
		}
		return more(answer)
	}, "rollback", fmt.Sprint(newest), "--key", c.Path("operator", "signing.key"))
	return err
}

// hiddenList makes Dora revoke two keys, one after the other. At the second revocation the provider
// hides the first from her. Her second signature must cover both keys.
func (c *cluster) hiddenList(t *testing.T) error {
	revoke := func(lie func(*http.Response) error, words ...string) {
		t.Helper()
		args := append(words, "--key", c.Path("operator", "signing.key"), "--wait", "0s")
		if out, err := c.florctlLied(t, lie, args...); err != nil && !strings.Contains(out, "is offered") {
			t.Fatal(err)
		}
	}
	const first, second = "SHA256:hidden", "SHA256:next"
	before := c.offered(t)
	revoke(nil, "revoke", "--host-key", first)
	revoke(answering("/v1/revocations", func(v *map[string]any) {
		*v = map[string]any{"signed": before, "number": 1, "entries": 0}
		if before.List == "" {
			(*v)["number"] = 0
		}
	}), "revoke", "--host-key", second)
	list, err := c.offered(t).Open()
	if err != nil {
		t.Fatal(err)
	}
	if list.CheckKey(second) == nil {
		t.Errorf("list %d does not revoke the second key", list.Number)
	}
	revoke(nil, "reinstate", "--host-key", first, "--host-key", second)
	return list.CheckKey(first)
}
