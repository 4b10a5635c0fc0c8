// Search for a site that is opened as files, where browsers refuse workers and requests. This class takes the place of
// the worker of MkDocs' search (search/main.js): it loads lunr and the index, which docs/site.py writes as a script too.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.folder = url.replace(/worker\.js$/, "");
    }

    postMessage(message) {
      if (message.init) {
        if (document.getElementById("mkdocs-search-results")) {
          this.load("lunr.js", () => this.load("search_index.js", () => this.build()));
        }
      } else {
        const results = this.index.search(message.query).map((result) => this.pages.get(result.ref));
        this.onmessage({ data: { results } });
      }
    }

    load(name, then) {
      const script = document.createElement("script");
      script.src = this.folder + name;
      script.onload = then;
      document.head.append(script);
    }

    build() {
      const { config, docs } = window.search_index;
      this.pages = new Map(docs.map((page) => [page.location, { ...page, summary: page.text.substring(0, 200) }]));
      this.index = lunr(function () {
        this.tokenizer.separator = new RegExp(config.separator);
        this.field("title");
        this.field("text");
        this.ref("location");
        docs.forEach((page) => this.add(page));
      });
      this.onmessage({ data: { config } });
      this.onmessage({ data: { allowSearch: true } });
    }
  };
}
