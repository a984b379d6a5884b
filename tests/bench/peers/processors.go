package main

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// processors lists the processors that this program may use. The two forwarders that publish
// services run on the first processor. Their load and all other processes run on the others. On
// shared processors the scheduler delays threads that have run more, and would count the noise of
// the peers against the forwarders.
var processors = func() (all []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for i := 0; len(all) < set.Count(); i++ {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all
}()

// onFirst calls start, and makes the processes that it starts run only on the first processor. It
// has no effect if there is only one processor.
func onFirst(start func() error) error {
	if len(processors) < 2 {
		return start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := pin(unix.Gettid(), processors[:1]); err != nil {
		return err
	}
	defer pin(unix.Gettid(), processors[1:])
	return start()
}

// onOthers makes this program run on all processors except the first. It has no effect if there is
// only one processor.
func onOthers() error {
	if len(processors) < 2 {
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			if err := pin(tid, processors[1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

func pin(thread int, to []int) error {
	var set unix.CPUSet
	for _, i := range to {
		set.Set(i)
	}
	return unix.SchedSetaffinity(thread, &set)
}
