// Lets the search run on pages that are opened as files, where browsers allow no workers: in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.reply = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inside.document.open()
      inside.document.write(`<script>
        postMessage = data => reply(data)
        importScripts = (...urls) => urls.forEach(url => document.write('<script src="' + url + '"></' + 'script>'))
      </script><script src="${url}"></script>`)
      inside.document.close()
      this.ready = new Promise(resolve => { inside.addEventListener("load", resolve) })
      this.inside = inside
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
