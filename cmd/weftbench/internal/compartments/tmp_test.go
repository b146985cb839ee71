package compartments

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTmpZones(t *testing.T) {
	cfg := Default()
	cfg.Progress = io.Discard
	rows, err := cfg.zoned(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range zoned(cfg, rows).Rows {
		fmt.Println("| " + strings.Join(r, " | ") + " |")
	}
}
