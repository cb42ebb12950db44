"""Chromium without a window, for checks: one page at a time, over the DevTools protocol on two pipes.

    with Browser() as b:
        b.open("file:///…/page.html")
        b.ask("document.title")          # the value of an expression, or of a promise
        b.until("done === true", 20)     # seconds
        b.choose("#files", [path, …])    # of <input type=file>
        b.picture("page.png", 800, 600)
"""
import base64
import json
import os
import subprocess
import tempfile
import time


class Browser:
    def __enter__(self):
        to_us, from_it = os.pipe()
        for_it, from_us = os.pipe()
        self.folder = tempfile.TemporaryDirectory()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                   "--user-data-dir=" + self.folder.name, "--hide-scrollbars", "about:blank"]

        def pipes():  # the protocol is on 3 and 4
            a, b = os.dup(for_it), os.dup(from_it)
            os.dup2(a, 3), os.dup2(b, 4)

        self.process = subprocess.Popen(["chromium"] + options, preexec_fn=pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(for_it), os.close(from_it)
        self.to, self.back, self.last, self.rest, self.session = from_us, to_us, 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "DOM"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise RuntimeError("Chromium ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        what = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            what["sessionId"] = self.session
        data = json.dumps(what).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            m = self.message()
            if m.get("id") == self.last:
                if "error" in m:
                    raise RuntimeError("%s: %s" % (method, m["error"]["message"]))
                return m["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'", 30)

    def ask(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise RuntimeError("%s: %s" % (expression, r["exceptionDetails"]))
        return r["result"].get("value")

    def until(self, condition, seconds):
        end = time.time() + seconds
        while not self.ask("!!(%s)" % condition):
            if time.time() > end:
                raise RuntimeError("not within %g s: %s" % (seconds, condition))
            time.sleep(0.02)

    def choose(self, selector, paths):
        document = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=paths)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def picture(self, path, width=900, height=1000):
        self.size(width, height)
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
