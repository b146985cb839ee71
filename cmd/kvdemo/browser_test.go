// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weftraft/weft/cmd/kvdemo/internal/page"
)

// Environment of the browser's test: KVDEMO_TEST_BROWSER has it fail without Chromium,
// KVDEMO_TEST_SCREENSHOTS names a directory for pictures of the page.
const (
	wantBrowser = "KVDEMO_TEST_BROWSER"
	screenshots = "KVDEMO_TEST_SCREENSHOTS"
)

// findChromium returns the path of a browser; the test ends without one.
func findChromium(t *testing.T) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const install = "no chromium in PATH; install it (Debian: apt-get install chromium) and run make test-page"
	if os.Getenv(wantBrowser) != "" {
		t.Fatal(install)
	}
	t.Skip("the page is not tested in a browser: " + install)
	return ""
}

// tab is a tab of a browser, and all errors that the browser reports for the tab.
type tab struct {
	t    *testing.T
	ctx  context.Context
	host string // of the page

	mu         sync.Mutex
	complaints []string
}

// openTab opens a page in a window of a size, and waits until it shows a state.
func openTab(t *testing.T, browser context.Context, address string, width, height int64) *tab {
	u, err := url.Parse(address)
	require.NoError(t, err)
	b := &tab{t: t, host: u.Host}
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithListener(b.listen), chromedp.WithNewWindow(true)) // one behind another would be hidden
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	b.ctx = ctx
	_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	b.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	b.until("the page to show a state", `document.documentElement.dataset.shown !== undefined`)
	return b
}

// listen notes what must not happen.
func (b *tab) listen(event any) {
	complain := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.complaints = append(b.complaints, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		complain("exception: %s", e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			complain("console: %v", e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			complain("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Host != b.host {
			complain("request to %s", e.Request.URL)
		}
	}
}

// quiet checks that there was no complaint.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.complaints)
}

func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// eval returns the value of an expression as text.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+expression+")"))
	require.NoError(b.t, err, expression)
	return value
}

// until waits until an expression is true.
func (b *tab) until(what, expression string) {
	b.t.Helper()
	eventually(b.t, what+": "+expression, func() bool { return b.eval(expression) == "true" })
}

// click waits for the button on a node's card and presses the button.
func (b *tab) click(id uint64, button string) {
	b.t.Helper()
	b.run(chromedp.Click(chromedp.CSS(fmt.Sprintf(`[data-node="%d"] button[data-do=%s]`, id, button)), chromedp.NodeVisible))
}

// fits checks that nothing is wider than the window, and that no text is cut off by the
// edge of its card.
func (b *tab) fits() {
	b.t.Helper()
	require.Equal(b.t, "0", b.eval(`document.documentElement.scrollWidth - document.documentElement.clientWidth`), "no horizontal scroll")
	require.Empty(b.t, b.eval(`[...document.querySelectorAll('.card, .panel, .tiles > div')].filter(e => {
		const r = e.getBoundingClientRect();
		return r.left < 0 || r.right > innerWidth + 0.5 || [...e.querySelectorAll('dd, .value, h2, button:not([hidden])')].some(x => x.scrollWidth > x.clientWidth + 1 && x.clientWidth > 0);
	}).map(e => innerWidth + ': ' + e.textContent.replace(/\s+/g, ' ').slice(0, 90)).join('; ')`), "cut off")
}

// shoot takes a picture, if pictures are wanted, of the height of the page.
func (b *tab) shoot(name string, dark bool) {
	dir := os.Getenv(screenshots)
	if dir == "" {
		return
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name), reduced(b.t, picture), 0o644))
}

// reduced returns a picture with the 256 colours that it has most of, in about half of
// the bytes.
func reduced(t *testing.T, picture []byte) []byte {
	full, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	counts := map[color.Color]int{}
	area := full.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return counts[b] - counts[a] })
	few := image.NewPaletted(area, colours[:min(len(colours), 256)])
	draw.Draw(few, area, full, area.Min, draw.Src)
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	return out.Bytes()
}

// browserNodes is how many the demonstration in the browser has.
const browserNodes = 5

// The page in Chromium, in a window as wide as a screen and in one as wide as a telephone: no element is wider than the
// window, no other server is asked, figures change, and each button has its effect.
func TestPageInChromium(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(findChromium(t)), chromedp.WSURLReadTimeout(limit))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...) // which ends when the test does
	t.Cleanup(stop)
	browser, closeBrowser := chromedp.NewContext(alloc)
	t.Cleanup(closeBrowser)
	require.NoError(t, chromedp.Do(browser))

	d := startDemo(t, browserNodes)
	desk := openTab(t, browser, d.url, 1280, 800)
	hand := openTab(t, browser, d.url, 390, 844)
	for _, b := range []*tab{desk, hand} {
		b.until("all members", fmt.Sprintf(`document.querySelectorAll('.card.up').length === %d`, browserNodes))
		b.until("coded entries", `document.querySelectorAll('#entries tbody tr').length > 4 && document.querySelectorAll('#entries .unit.own').length > 8`)
		b.until("links", fmt.Sprintf(`document.querySelectorAll('#links .cell').length === %d`, browserNodes*(browserNodes-1)))
		b.until("latencies", `[...document.querySelectorAll('#latency .bar.writes')].some(e => e.offsetHeight > 20)`)
		b.until("gossip", fmt.Sprintf(`document.querySelectorAll('#gossip svg').length === %d && document.querySelector('#gossip .trace').getAttribute('d').includes('L')`, browserNodes))
		before := b.eval(`document.querySelector('[data-tile="commit index"] .value').textContent`)
		b.until("the commit index to move", fmt.Sprintf(`document.querySelector('[data-tile="commit index"] .value').textContent !== %q`, before))
		b.fits()
	}
	testButtons(t, d, desk, hand)
	for _, b := range []*tab{desk, hand} {
		b.fits()
		b.quiet()
	}
	s := d.until("all nodes", func(s *page.State) bool { return allAre(s, browserNodes, page.Up) })
	d.end(s.Members)
	desk.until("that the page is old", `document.getElementById('live').className === 'stale'`)
}

// testButtons presses the buttons of both windows in turns.
func testButtons(t *testing.T, d *demonstration, desk, hand *tab) {
	id := follower(d.until("a leader", func(s *page.State) bool { return s.Leader != 0 }))
	card := func(state string) string {
		return fmt.Sprintf(`document.querySelector('[data-node="%d"]').dataset.state === '%s'`, id, state)
	}
	hand.click(id, "kill")
	for _, b := range []*tab{hand, desk} {
		b.until("the member to be down", card(page.Down))
	}
	desk.until("the event", fmt.Sprintf(`document.getElementById('events').textContent.includes('node %d was killed')`, id))
	for _, b := range []*tab{hand, desk} {
		b.until("the mark of the kill", fmt.Sprintf(`[...document.querySelectorAll('#history .mark.kill')].some(e => e.textContent === '✕ %d')`, id))
		b.until("a line of writes", `document.querySelector('#history .trace').getAttribute('d').split('L').length > 5`)
	}
	desk.shoot("page-desk.png", false)
	hand.shoot("page-hand.png", true)
	desk.fits()
	hand.fits()
	without := `document.getElementById('banner').hidden`
	require.Equal(t, "true", hand.eval(without))
	away := []uint64{id%browserNodes + 1, (id+1)%browserNodes + 1}
	for _, other := range away {
		d.do(page.Command{Do: page.Kill, Node: other})
	}
	for _, b := range []*tab{hand, desk} {
		b.until("the banner", `document.getElementById('banner').textContent.startsWith('No majority: 2 of 5 voters are up. ')`)
		b.fits()
	}
	for _, other := range away {
		d.do(page.Command{Do: page.Start, Node: other})
	}
	hand.until("no banner", without)
	desk.click(id, "start")
	desk.until("the member to be up", card(page.Up))
	desk.until("the mark of an election", `document.querySelector('#history .mark.election') !== null`)

	hand.click(id, "pause")
	hand.until("the member to be paused", card(page.Paused))
	desk.until("the member to be paused", card(page.Paused)+fmt.Sprintf(` && document.querySelector('[data-node="%d"] .role').textContent.includes('paused by you')`, id))
	desk.click(id, "resume")
	desk.until("the member to go on", card(page.Up))

	from := id%browserNodes + 1
	cell := fmt.Sprintf(`[data-link="%d-%d"]`, from, id)
	button := chromedp.CSS(cell)
	for _, shape := range []struct {
		rate, delay, want string
	}{{"1000000", "20", "1 MB/s +20 ms"}, {"0", "0", ""}} {
		hand.run(
			chromedp.Click(button, chromedp.NodeVisible), chromedp.WaitVisible(chromedp.CSS("#shape")),
			chromedp.SetValue(chromedp.CSS("#shape-rate"), shape.rate), chromedp.SetValue(chromedp.CSS("#shape-delay"), shape.delay),
			chromedp.Click(chromedp.CSS("#shape-set")),
		)
		desk.until("the link's shape", fmt.Sprintf(`(document.querySelector('%s small')?.textContent ?? '') === '%s'`, cell, shape.want))
	}

	pick := func(b *tab, id, value string) {
		b.run(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{ const e = document.getElementById('%s'); e.value = '%s'; e.dispatchEvent(new Event('change')) }`, id, value)))
	}
	pick(hand, "policy", page.PolicyWhole)
	desk.until("the policy", `document.getElementById('policy').value === 'off'`)
	desk.until("no coded entries", `document.querySelectorAll('#entries tbody tr').length === 0 && !document.getElementById('no-entries').hidden`)
	pick(desk, "policy", page.PolicyFewest)
	hand.until("coded entries", `document.querySelectorAll('#entries tbody tr').length > 0`)
	pick(hand, "load", "0")
	desk.until("no writes", `document.querySelector('[data-tile=writes] .value').textContent === '0/s'`)

	// A command that is refused says why.
	desk.run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#load').append(new Option('far too much', '99999'))`))
	pick(desk, "load", "99999")
	desk.until("the reason", `!document.getElementById('failure').hidden && document.getElementById('failure').textContent.includes('want 0 to 2000')`)
	desk.mu.Lock()
	defer desk.mu.Unlock()
	refused := func(c string) bool { return strings.Contains(c, "409") && strings.Contains(c, "/page/do") } // which the browser logs
	var others []string
	for _, c := range desk.complaints {
		if !refused(c) {
			others = append(others, c)
		}
	}
	require.Less(t, len(others), len(desk.complaints), "the browser logs a refusal")
	desk.complaints = others
}
