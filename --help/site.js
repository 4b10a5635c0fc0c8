// Code and tables that are wider than their place scroll, so the keyboard must reach them.
function reachWide() {
    for (const box of document.querySelectorAll(".rst-content pre code, .rst-content .wy-table-responsive, .rst-content table"))
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}
addEventListener("load", reachWide);
addEventListener("resize", reachWide);
