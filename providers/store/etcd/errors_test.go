package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/florete/florete/providers/store"
)

// TestUnanswered checks which errors of a request count as an answer of the store.
func TestUnanswered(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{context.DeadlineExceeded, true},
		{fmt.Errorf("get: %w", context.Canceled), true},
		{status.Error(codes.Unavailable, "transport is closing"), true},
		{status.Error(codes.Unknown, "context deadline exceeded"), true},
		{status.Error(codes.Unknown, "context canceled"), true},
		{rpctypes.ErrNoLeader, true},
		{rpctypes.ErrTimeout, true},
		{rpctypes.ErrTooManyRequests, true},
		{status.Error(codes.Unknown, "unexpected HTTP status code received from server: 502 (Bad Gateway)"), true},
		{fmt.Errorf("key: %w", store.ErrConflict), false},
		{rpctypes.ErrNoSpace, false},
		{status.Error(codes.Unauthenticated, "something else"), false},
		{rpctypes.ErrCompacted, false},
		{rpctypes.ErrPermissionDenied, false},
		{errors.New("another"), false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
}
