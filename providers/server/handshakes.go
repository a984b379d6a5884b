package server

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"regexp"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/terminal"
)

// handshakes receives the log lines of an http.Server about connections on which no request was
// sent. These lines are the only place where the server reports failed TLS handshakes.
type handshakes struct {
	audit  *Audit
	logger *slog.Logger
}

var (
	handshake = regexp.MustCompile(`^http: TLS handshake error from (\S+): (.*)\n$`)

	// silent matches connections that merely ended, such as those of a monitor or those that made
	// room for others, and those that were turned away, which the log sums up.
	silent = regexp.MustCompile(`(^EOF|i/o timeout|use of closed network connection|connection reset by peer|broken pipe|` +
		regexp.QuoteMeta(conns.ErrGone.Error()) + `|` + regexp.QuoteMeta((&conns.FullError{}).Error()) + `)$`)
)

func (h handshakes) Write(line []byte) (int, error) {
	m := handshake.FindSubmatch(line)
	switch {
	case bytes.HasPrefix(line, []byte("http: panic")):
		h.logger.Error(terminal.Text(string(line)))
		return len(line), nil
	case m == nil || silent.Match(m[2]):
		h.logger.Debug(terminal.Text(string(line)))
		return len(line), nil
	}
	row := Row{Time: time.Now().UTC(), From: string(m[1])}.Refuse(hostapi.Errorf(hostapi.Code{Name: CodeHandshake, Class: hostapi.Denied}, "%s", m[2]))
	if err := h.audit.Stranger(context.Background(), row); err != nil {
		h.logger.Error("a failed handshake is not in the audit log", "error", err)
	}
	return len(line), nil
}

func (h handshakes) log() *log.Logger { return log.New(h, "", 0) }
