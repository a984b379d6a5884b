// Package journal writes the logs of programs. Each event is one line: a message, followed by
// key=value pairs. If standard error is connected to systemd's journal, the line begins with the
// priority (sd-daemon(3)) and contains no time. Otherwise it begins with the time and the level:
//
//	<4>no access source=10.77.0.3 service=wiki
//	2026-11-22T00:36:37Z WARN no access source=10.77.0.3 service=wiki
package journal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// New returns a logger that writes each line to w with a single call of Write.
func New(w io.Writer) *slog.Logger {
	h := &handler{out: &output{w: w, journal: isJournal(w)}}
	h.text = slog.NewTextHandler(&h.out.attrs, &slog.HandlerOptions{ReplaceAttr: withoutHead})
	return slog.New(h)
}

// Prefix returns the text with which a log line for the writer must begin. If the writer is
// systemd's journal, this is the priority of the level, such as "<4>" for a warning. Otherwise it
// is "".
func Prefix(w io.Writer, level slog.Level) string {
	if !isJournal(w) {
		return ""
	}
	return priority(level)
}

func priority(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "<3>"
	case level >= slog.LevelWarn:
		return "<4>"
	case level >= slog.LevelInfo:
		return "<6>"
	}
	return "<7>"
}

// handler is the slog.Handler of this package. It writes time, level and message itself. It leaves
// attributes and groups to a slog.TextHandler.
type handler struct {
	out  *output
	text slog.Handler
}

// output is the destination of a logger. All loggers that are derived from this logger share it.
type output struct {
	w       io.Writer
	journal bool

	mu    sync.Mutex
	attrs bytes.Buffer // attributes of the current record
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	o := h.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attrs.Reset()
	only := slog.NewRecord(time.Time{}, headLevel, headMessage, 0)
	r.Attrs(func(a slog.Attr) bool { only.AddAttrs(a); return true })
	if err := h.text.Handle(ctx, only); err != nil {
		return err
	}
	head := priority(r.Level)
	if !o.journal {
		head = fmt.Sprintf("%s %s ", r.Time.UTC().Format(time.RFC3339), r.Level)
	}
	line := head + strings.ReplaceAll(r.Message, "\n", " ")
	if attrs := o.attrs.String(); attrs != "\n" {
		line += " " + attrs
	} else {
		line += attrs
	}
	_, err := io.WriteString(o.w, line)
	return err
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.out, h.text.WithAttrs(attrs)}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.out, h.text.WithGroup(name)}
}

// Values with which handler marks the level and the message of a record for the inner handler. The
// inner handler must leave them out, because handler writes them itself. No attribute has these
// values.
const (
	headLevel   = slog.Level(-1 << 20)
	headMessage = "\x00"
)

func withoutHead(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Any() == headLevel || a.Value.Kind() == slog.KindString && a.Value.String() == headMessage {
		return slog.Attr{}
	}
	return a
}

// isJournal reports whether w is connected to systemd's journal. It compares w with $JOURNAL_STREAM
// (systemd.exec(5)).
func isJournal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
