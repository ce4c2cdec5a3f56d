package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// nanos tells nanoseconds in three digits or so.
func nanos(ns float64) string {
	d := time.Duration(ns)
	switch a := d.Abs(); {
	case a >= 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", ns/1e6)
	case a >= time.Millisecond:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	case a >= 10*time.Microsecond:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	case a >= time.Microsecond:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

func times(ratio float64) string { return fmt.Sprintf("%.2f ×", ratio) }

func count(n float64) string { return fmt.Sprintf("%.0f", n) }

func bytesText(n float64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", n/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", n)
}

// procField returns the value of a field of a file in /proc, or "".
func procField(file, field string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func cpuModel() string {
	if model := procField("/proc/cpuinfo", "model name"); model != "" {
		return model
	}
	return "a processor of unknown model"
}

func memoryTotal() string {
	var kib float64
	if _, err := fmt.Sscanf(procField("/proc/meminfo", "MemTotal"), "%f kB", &kib); err != nil {
		return "memory unknown"
	}
	return bytesText(kib*1024) + " of memory"
}

// loadNow tells how busy the machine is at the end of the run.
func loadNow() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return ""
	}
	return "; load average of the last 15 minutes " + fields[2]
}

// versionsOf returns modules as they are compiled into this program.
func versionsOf(modules ...string) []string {
	compiled := map[string]string{}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			compiled[dep.Path] = dep.Version
		}
	}
	found := make([]string, len(modules))
	for i, m := range modules {
		found[i] = m + " " + cmp.Or(compiled[m], "of unknown version")
	}
	return found
}

// versions asks the servers that have been started.
func (s *servers) versions(ctx context.Context) []string {
	var found []string
	if client, err := s.client(ctx, s.redis); err == nil {
		defer func() { _ = client.Close() }()
		info, _ := client.Info(ctx, "server").Result()
		_, rest, _ := strings.Cut(info, "redis_version:")
		version, _, _ := strings.Cut(rest, "\r\n")
		found = append(found, "Redis "+version+" without persistence")
	}
	if pool, err := s.pool(ctx, s.postgres); err == nil {
		defer pool.Close()
		var version string
		if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err == nil {
			found = append(found, "PostgreSQL "+version)
		}
	}
	return found
}
