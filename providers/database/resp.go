package database

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// These constants limit the size of a reply. They are far above the size of the replies to this
// package's commands.
const (
	maxReply = 1 << 20 // bytes of a text
	maxItems = 1 << 16
	maxDepth = 4
)

// readReply reads a reply of the Redis protocol, version 2: a string, an int64, nil, or a list of
// these. An error reply is returned as an error.
func readReply(in *bufio.Reader, depth int) (any, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	text, whole := strings.CutSuffix(string(line), "\r\n")
	if !whole || text == "" || depth > maxDepth {
		return nil, errors.New("not a reply of Redis")
	}
	kind, rest := text[0], text[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, explained(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	}
	n, err := strconv.Atoi(rest)
	switch {
	case err != nil:
		return nil, errors.New("not a reply of Redis")
	case n == -1 && (kind == '$' || kind == '*'):
		return nil, nil
	case kind == '$' && n >= 0 && n <= maxReply:
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case kind == '*' && n >= 0 && n <= maxItems:
		all := []any{}
		for range n {
			v, err := readReply(in, depth+1)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	}
	return nil, fmt.Errorf("not a reply of Redis: %.40q", text)
}

// explained returns the error for an error message of the server. The error contains a remedy if
// one is known.
func explained(message string) error {
	code, _, _ := strings.Cut(message, " ")
	remedy := map[string]string{
		"NOAUTH":    ": put the user's password into the provider's file",
		"WRONGPASS": ": put the user's password into the provider's file",
		"NOPERM":    ": allow the provider's user ~* &* +@all",
	}[code]
	if strings.Contains(message, "not configured to use an ACL file") {
		remedy = ": set aclfile in redis.conf, or users would be gone after a restart"
	}
	return errors.New(message + remedy)
}
