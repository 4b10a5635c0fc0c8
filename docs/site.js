// Code that is wider than the page scrolls, so the keyboard must reach it.
for (const code of document.querySelectorAll(".rst-content pre code, .rst-content .wy-table-responsive")) code.tabIndex = 0;
