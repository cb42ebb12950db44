"""Checks of the Python package; python.sh runs them. Usage: python_view.py PART [FOLDER], where PART is

    alone     what needs the standard library only: table, tensors, errors, memory, threads
    arrays    NumPy, and PyTorch if it is installed: values, gradients, shared memory
    models    FOLDER contains models that the programs made
    notebook  the cells of docs/guide/python.md in a Jupyter kernel
"""
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import threading
import unittest

if sys.argv[1] != "notebook":
    import tenon

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
folder = sys.argv[2] if len(sys.argv) > 2 else "."


def resident():
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Alone(unittest.TestCase):
    def raises(self, status, text, function, *arguments, **keywords):
        with self.assertRaises(tenon.Error) as caught:
            function(*arguments, **keywords)
        self.assertEqual(caught.exception.status, status)
        self.assertIn(text, str(caught.exception))
        self.assertEqual(tenon._library.failed(), 0)

    def test_0_structs_are_those_of_c(self):
        """Sizes and offsets of all structs, from a C program."""
        from tenon import _declarations, _library, _signatures

        lines, python = [], []
        for name, members in _signatures.STRUCTS.items():
            if name.endswith("_level_"):
                continue  # a struct inside another has no name in C
            kind = _library.type_of(name)
            lines.append('printf("%s %%zu\\n", sizeof(%s));' % (name, name))
            python.append("%s %d" % (name, ctypes.sizeof(kind)))
            for m in members:
                lines.append('printf("%s.%s %%zu\\n", offsetof(%s, %s));' % (name, m.name, name, m.name))
                python.append("%s.%s %d" % (name, m.name, getattr(kind, m.name).offset))
        for members in _declarations.ENUMS.values():
            for m, value in members.items():
                lines.append('printf("%s %%d\\n", (int)%s);' % (m, m))
                python.append("%s %d" % (m, value))
        for m, value in _declarations.CONSTANTS.items():
            lines.append('printf("%s %%d\\n", (int)%s);' % (m, m))
            python.append("%s %d" % (m, value))
        headers = "#include <stdio.h>\n#include \"tenon.h\"\n#include \"extras.h\"\n"
        program = headers + "int main(void)\n{\n%s\n}\n" % "\n".join(lines)
        with tempfile.TemporaryDirectory() as at:
            path = os.path.join(at, "sizes")
            with open(path + ".c", "w") as f:
                f.write(program)
            subprocess.check_call([os.environ.get("CC", "cc"), "-I" + root, path + ".c", "-o", path])
            self.assertEqual(subprocess.check_output([path], text=True).split("\n")[:-1], python)
        self.assertGreater(len(python), 300)

    def test_every_op_has_a_function(self):
        for name in ("add", "softmax", "attention", "cross_entropy", "split", "einsum", "add_"):
            self.assertTrue(callable(getattr(tenon, name)))
        self.assertGreater(len(tenon.ops.__all__), 150)
        self.assertIn("tn_softmax(tn_tensor *x, int dim)", tenon.softmax.__doc__)
        self.assertIn("keepdim", __import__("inspect").signature(tenon.sum).parameters)

    def test_creation_and_lists(self):
        x = tenon.tensor([[1, 2, 3], [4, 5, 6]])
        self.assertEqual((x.shape, x.dtype, x.tolist()), ((2, 3), tenon.i64, [[1, 2, 3], [4, 5, 6]]))
        self.assertEqual(tenon.tensor([True, False]).dtype, tenon.Dtype.bool)
        self.assertEqual(tenon.tensor(2.5).item(), 2.5)
        self.assertEqual(tenon.tensor([]).shape, (0,))
        self.assertEqual(tenon.tensor([[], []]).tolist(), [[], []])
        self.assertEqual(tenon.arange(4).tolist(), [0, 1, 2, 3])
        self.assertEqual(tenon.full((2,), 7, dtype="i32").tolist(), [7, 7])
        self.assertEqual(tenon.zeros(2, 2).view(4).tolist(), [0.0] * 4)
        self.assertEqual(tenon.tensor([2**62 + 1])[0].item(), 2**62 + 1)
        self.assertEqual(tenon.ones(3, dtype="bf16").tolist(), [1.0] * 3)
        self.assertEqual(repr(tenon.eye(2)), "tensor([[1., 0.],\n        [0., 1.]])")
        self.assertEqual(tenon.empty(0, 3).tolist(), [])
        with self.assertRaises(ValueError):
            tenon.tensor([[1, 2], [3]])
        with self.assertRaises(TypeError):
            tenon.zeros(2, dtype="f16")

    def test_operators_and_indexing(self):
        x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
        for made, wanted in (
            (x + 1, [[2, 3], [4, 5]]), (1 - x, [[0, -1], [-2, -3]]), (x * x, [[1, 4], [9, 16]]),
            (2 / x, [[2, 1], [2 / 3, 0.5]]), (x ** 2, [[1, 4], [9, 16]]), (-x, [[-1, -2], [-3, -4]]),
            (x @ x, [[7, 10], [15, 22]]), (x % 2, [[1, 0], [1, 0]]), (x - x, [[0, 0], [0, 0]]),
            (x[0], [1, 2]), (x[:, 1], [2, 4]), (x[-1, ...], [3, 4]), (x[None].shape[0:1], (1,)),
            (x[1:, ::2], [[3]]), (x[x > 2.5], [3, 4]), (x[[1, 0]], [[3, 4], [1, 2]]), (x.T, [[1, 3], [2, 4]]),
            (abs(-x), [[1, 2], [3, 4]]), (2 ** x, [[2, 4], [8, 16]]), (x.sum(dim=1), [3, 7]),
            (x.reshape(-1), [1, 2, 3, 4]), (x.permute(1, 0), [[1, 3], [2, 4]]), (x.expand(2, 2, 2)[1], x.tolist()),
        ):
            made = made.tolist() if isinstance(made, tenon.Tensor) else made
            self.assertEqual(made, type(made)(wanted) if not isinstance(wanted, list) else
                             tenon.tensor(wanted, dtype="f32").tolist())
        self.assertEqual((x > 2).tolist(), [[False, False], [True, True]])
        self.assertEqual(((x > 2) & ~(x == 4)).tolist(), [[False, False], [True, False]])
        self.assertEqual((tenon.arange(3) == 1).tolist(), [False, True, False])
        self.assertEqual([float(row.sum()) for row in x], [3.0, 7.0])
        y = x.clone()
        y[0] = 9
        y[:, 1] *= 2
        y[y > 8.5] = -1
        self.assertEqual(y.tolist(), [[-1, -1], [3, 8]])
        self.assertEqual(x.tolist(), [[1, 2], [3, 4]])
        self.assertTrue(bool(x.sum() == 10) and len(x) == 2 and x != None)  # noqa: E711
        values, places = x.max(1, keepdim=True)
        self.assertEqual((values.tolist(), places.tolist()), ([[2], [4]], [[1], [1]]))
        self.assertEqual([t.tolist() for t in tenon.arange(5).split(2)], [[0, 1], [2, 3], [4]])
        self.assertEqual([len(t) for t in tenon.arange(5).chunk(2)], [3, 2])
        self.assertEqual(tenon.cat([x, x], dim=1).shape, (2, 4))
        self.assertEqual(tenon.einsum("ij,jk->ik", [x, x]).tolist(), (x @ x).tolist())
        loss, counted = tenon.cross_entropy(x, tenon.tensor([0, -100]), counted=True)
        self.assertEqual(counted, 1)
        self.assertEqual(tenon.attention(x, x, x, weights=True)[1].shape, (2, 2))
        self.assertTrue(tenon.allclose(x, x + 1e-9))
        self.assertFalse(tenon.allclose(x, x + 1))

    def test_an_assignment_is_not_lost(self):
        """self[key] is a copy if a list or an array is among several indices."""

        def assign(x, key):
            x[key] = 7

        array = tenon.tensor([0])
        for key in ((0, [1, 2]), ([0, 1], 0), (slice(None), array), (Ellipsis, [0]), (None, [0]), (array, array)):
            x = tenon.zeros(2, 3)
            with self.assertRaisesRegex(TypeError, "among several indices is not supported; use index_copy or where"):
                assign(x, key)
            self.assertEqual(x.tolist(), [[0.0] * 3] * 2)
        with self.assertRaises(TypeError):
            x[0, [1, 2]] += 1
        x[0, tenon.tensor(1)] = 7  # a 0-d tensor is a number
        x[None, 1, ..., 1:] = 8
        self.assertEqual(x.tolist(), [[0, 7, 0], [0, 8, 8]])

    def test_a_floating_tensor_is_not_an_index(self):
        x = tenon.arange(4)
        for dtype in ("f32", "f64", "bf16"):
            index = tenon.tensor(1.0, dtype=dtype)
            for use in (lambda: x[index], lambda: [1, 2][index], lambda: x[index:], lambda: tenon.zeros(index)):
                with self.assertRaisesRegex(TypeError, "only integer tensors can be an index, got one of " + dtype):
                    use()
            self.assertEqual(int(index), 1)
        for dtype in ("i64", "i32", "u8", "bool"):
            index = tenon.tensor(1, dtype=dtype)
            self.assertEqual((x[index].item(), [1, 2][index], x[index:].tolist()), (1, 2, [1, 2, 3]))

    def test_large_ints_are_exact(self):
        """A double, which the ops of a scalar take, has 53 bits."""
        for large in (2**53 + 1, -(2**53) - 1, 2**62 + 1):
            x = tenon.tensor([3, -4])
            for made, wanted in (
                (x + large, [3 + large, -4 + large]), (large + x, [3 + large, -4 + large]),
                (x - large, [3 - large, -4 - large]), (large - x, [large - 3, large + 4]),
                (tenon.ones(2, dtype="i64") * large, [large] * 2), (large * tenon.ones(2, dtype="i64"), [large] * 2),
            ):
                self.assertEqual((made.dtype, made.tolist()), (tenon.i64, wanted))
            y, z, w = x.clone(), x.clone(), tenon.ones(2, dtype="i64")
            y += large
            z -= large
            w *= large
            self.assertEqual((y.tolist(), z.tolist(), w.tolist()),
                             ([3 + large, -4 + large], [3 - large, -4 - large], [large] * 2))
        self.assertEqual((tenon.tensor([-1]) ** (2**53 + 1)).tolist(), [-1])
        self.assertEqual((tenon.tensor([5]) - -(2**53)).tolist(), [5 + 2**53])
        narrow = tenon.tensor([3], dtype="i32")
        for made, wanted in ((narrow + (2**53 + 1), 4), (narrow * (2**53 + 1), 3), ((2**53 + 1) - narrow, -2)):
            self.assertEqual((made.dtype, made.tolist()), (tenon.i32, [wanted]))  # modulo 2**32
        self.assertEqual((tenon.ones(1) * 2**70).tolist(), [2.0**70])
        self.assertEqual((tenon.ones(1, dtype="f64") + (2**53 + 2)).dtype, tenon.f64)
        self.raises("TN_EDTYPE", "does not fit", lambda: x + 2**63)
        for small in (1, 2**53 + 1):
            self.raises("TN_EDTYPE", "does not support bool", lambda: tenon.tensor([True]) + small)

    def test_gradients(self):
        x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]], dtype="f64", requires_grad=True)
        loss = (x * x * x).sum()
        loss.backward()
        self.assertEqual(x.grad.tolist(), [[3, 12], [27, 48]])
        x.grad = None
        self.assertIsNone(x.grad)
        (first,) = tenon.grad((x * x * x).sum(), [x], create_graph=True)
        (second,) = tenon.grad(first.sum(), [x])
        self.assertEqual(second.tolist(), [[6, 12], [18, 24]])
        self.assertIsNone(tenon.grad(x.sum(), [tenon.ones(2, dtype="f64").requires_grad_(), x])[0])
        with tenon.no_grad():
            x -= 1
            self.assertFalse((x * 2).requires_grad)
        self.assertTrue((x * 2).requires_grad)
        with tenon.autocast():
            self.assertEqual((tenon.ones(2, 2) @ tenon.ones(2, 2)).dtype, tenon.bf16)

    def test_a_line_is_fitted(self):
        tenon.seed(1)
        w, x = tenon.zeros(2, 1).requires_grad_(), tenon.normal(64, 2)
        y = x @ tenon.tensor([[2.0], [-3.0]])
        for _ in range(200):
            tenon.mse_loss(x @ w, y).backward()
            with tenon.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
        self.assertTrue(tenon.allclose(w, [[2.0], [-3.0]], 1e-3, 1e-3))

    def test_errors_are_exceptions(self):
        x = tenon.ones(2, 3)
        self.raises("TN_ESHAPE", "[2, 3]", lambda: x @ x)
        self.raises("TN_EINDEX", "", lambda: x.softmax(2))
        self.raises("TN_EINDEX", "", lambda: x[5])
        self.raises("TN_ESHAPE", "view", lambda: x.view(4, -2))
        self.raises("TN_ENOMEM", "", tenon.zeros, 2**40, 2**10)
        self.raises("TN_EIO", "no such file", tenon.open, "no-such-model")
        self.raises("TN_EIO", "", tenon.load, "no-such.safetensors")
        self.raises("TN_EINVAL", "NULL", tenon.add, x, None)
        y = tenon.ones(2).requires_grad_()
        loss = (y * y).sum()
        loss.backward()
        self.raises("TN_ESTATE", "", loss.backward)
        self.raises("TN_ESTATE", "no_grad", lambda: y.add_(1))
        for wrong in (lambda: x.softmax(), lambda: x.softmax(1, 2), lambda: x.sum(dimension=1), lambda: x.softmax(0.5),
                      lambda: tenon.Tensor(), lambda: x.softmax(0, dim=0)):
            self.assertRaises(TypeError, wrong)
        self.assertRaises(ValueError, tenon.mse_loss, x, x, reduction="median")
        self.assertRaises(ValueError, lambda: x[::-1])
        self.assertRaises(IndexError, lambda: x[0, 0, 0])
        self.assertRaises(ValueError, tenon.ones, *[1] * 9)
        self.assertEqual((x + 1).sum().item(), 12)  # and the library is as before

    def test_buffers_share_memory(self):
        data = bytearray(24)
        t = tenon.from_numpy(memoryview(data).cast("f", (2, 3)))
        t.copy_(tenon.arange(6).view(2, 3))
        self.assertEqual(memoryview(data).cast("f").tolist(), [0, 1, 2, 3, 4, 5])
        memoryview(data).cast("f")[0] = 9
        self.assertEqual(t[0, 0].item(), 9)
        view = t.buffer()
        self.assertEqual(ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))), t.data_ptr())
        self.assertEqual((view.shape, view.format), ((2, 3), "f"))
        del t
        gc.collect()
        view[1, 2] = 7  # the view keeps the tensor, the tensor the bytes
        self.assertEqual(memoryview(data).cast("f")[5], 7)
        self.assertTrue(tenon.ones(2).requires_grad_().buffer().readonly)
        self.assertRaises(BufferError, tenon.ones(2, 3).T.buffer)
        self.assertRaises(ValueError, tenon.from_numpy, b"1234")
        if sys.version_info >= (3, 12):
            self.assertEqual(memoryview(tenon.ones(2)).tolist(), [1, 1])
        del view
        gc.collect()
        data.append(0)  # fails while a buffer is exported

    def test_dlpack_without_others(self):
        x = tenon.arange(6).view(2, 3)
        y = tenon.from_dlpack(x.T)
        self.assertEqual((y.data_ptr(), y.tolist()), (x.data_ptr(), x.T.tolist()))
        x[0, 1] = 50
        self.assertEqual(y[1, 0].item(), 50)
        capsule = x.__dlpack__()
        z = tenon.from_dlpack(capsule)
        self.assertRaises(BufferError, tenon.from_dlpack, capsule)
        self.assertEqual(tenon.from_dlpack(tenon.ones(2, dtype="bf16")).dtype, tenon.bf16)
        self.assertRaises(BufferError, tenon.ones(1).requires_grad_().__dlpack__)
        x.__dlpack__()  # a capsule that nothing takes
        del x, y, z, capsule
        gc.collect()
        self.assertEqual(tenon._library.lent, {})
        with self.assertRaisesRegex(TypeError, "PyCapsule"):  # freed while the exception is set
            int(tenon.ones(1).__dlpack__())
        gc.collect()
        self.assertEqual((tenon._library.lent, tenon._tensor.capsules), ({}, []))

    def test_memory_stays_flat(self):
        """10,000 tensors on the tape, borrowed, exported and in cycles: the memory stays flat."""

        def step(i):
            x = tenon.tensor([[float(i), 1.0], [2.0, 3.0]], requires_grad=True)
            y = x.softmax(1).matmul(x).sum()
            y.backward()
            cycle = [x, y]
            cycle.append(cycle)
            tenon.from_dlpack(x.detach())
            tenon.from_numpy(bytearray(64)).add_scalar_(1)
            x[0].view(2).buffer()
            try:
                x.matmul(tenon.ones(3))
            except tenon.Error:
                pass

        for i in range(300):
            step(i)
        gc.collect()
        tensors, live, size = tenon.memory()["tensors"], tenon.memory()["live"], resident()
        for i in range(1000):
            step(i)  # more than ten tensors each
        gc.collect()
        self.assertEqual(tenon.memory()["tensors"], tensors)
        self.assertLessEqual(abs(tenon.memory()["live"] - live), 1 << 16)
        self.assertLess(resident() - size, 4 << 20)
        self.assertEqual(tenon._library.lent, {})

    def test_threads(self):
        """Each thread has its own errors, scopes and modes; tensors move between threads."""
        made, wrong = [], []

        def work(k):
            try:
                tenon.seed(k)
                for i in range(200):
                    x = tenon.full((8, 8), k, dtype="f64").requires_grad_()
                    (x @ x).sum().backward()
                    if x.grad[0, 0].item() != 16 * k:
                        wrong.append(x.grad[0, 0].item())
                    try:
                        x @ tenon.ones(k + 20, 2)
                    except tenon.Error as e:
                        if str(k + 20) not in str(e):
                            wrong.append(str(e))
                made.append(x.grad)
            except Exception as e:  # noqa: BLE001
                wrong.append(repr(e))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        self.assertEqual(sorted(t[0, 0].item() for t in made), [16, 32, 48, 64])

    def test_files_and_copies(self):
        import copy
        import pickle

        with tempfile.TemporaryDirectory() as at:
            path = os.path.join(at, "x.safetensors")
            tenon.save({"a": tenon.arange(3), "b": tenon.ones(2, 2, dtype="bf16")}, path)
            back = tenon.load(path)
            self.assertEqual([(n, t.dtype, t.tolist()) for n, t in back.items()],
                             [("a", tenon.i64, [0, 1, 2]), ("b", tenon.bf16, [[1, 1], [1, 1]])])
        x = tenon.normal(3, 4).T
        self.assertEqual(pickle.loads(pickle.dumps(x)).tolist(), x.tolist())
        y = copy.deepcopy(x)
        y += 1
        self.assertNotEqual(x.tolist(), y.tolist())

    def test_the_process_ends_well(self):
        """Tensors, arrays and capsules that live at the end of the process are not touched any more."""
        code = (
            "import tenon, gc\nx = tenon.ones(3).requires_grad_()\ny = (x * 2).sum()\n"
            "z = tenon.from_numpy(bytearray(8))\nc = x.detach().__dlpack__()\nb = z.buffer()\n"
            "class A: pass\na = A(); a.a = a; a.x = x\ngc.disable()\n"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True).stderr, b"")


class Arrays(unittest.TestCase):
    count = 0

    def close(self, made, wanted, what, rtol=None):
        made = made.numpy() if isinstance(made, tenon.Tensor) else np.asarray(made)
        wanted = np.asarray(wanted)
        self.assertEqual(made.shape, wanted.shape, what)
        if made.dtype.kind in "bi":
            self.assertTrue((made == wanted).all(), what)
        else:
            rtol = rtol or (1e-12 if made.dtype == np.float64 else 2e-5)
            np.testing.assert_allclose(made, wanted, rtol=rtol, atol=rtol, err_msg=what)
        Arrays.count += 1

    def arrays(self, low=-2.0, high=2.0, shape=(3, 4, 5)):
        """The same values in f32 and f64, dense, transposed, with steps, broadcast, and none at all."""
        rng = np.random.default_rng(5)
        for dtype in (np.float32, np.float64):
            dense = rng.uniform(low, high, shape).astype(dtype)
            yield "dense", dense
            yield "transposed", np.ascontiguousarray(dense.T).T
            yield "steps", rng.uniform(low, high, [2 * n for n in shape]).astype(dtype)[::2, 1::2, ::2]
            yield "empty", dense[:, :0]

    def of(self, a):
        """A tensor with the strides of the array, where it can share its memory."""
        try:
            return tenon.from_numpy(a)
        except ValueError:
            base = a.base if a.base is not None else a
            return tenon.from_numpy(base)[::2, 1::2, ::2]

    def test_functions_of_one_element(self):
        wide, above = (-2.0, 2.0), (0.1, 3.0)
        functions = {
            "neg": (np.negative, wide), "abs": (np.abs, wide), "sign": (np.sign, wide), "exp": (np.exp, wide),
            "expm1": (np.expm1, wide), "log": (np.log, above), "log1p": (np.log1p, above), "sqrt": (np.sqrt, above),
            "rsqrt": (lambda x: 1 / np.sqrt(x), above), "square": (np.square, wide),
            "reciprocal": (np.reciprocal, above), "sin": (np.sin, wide), "cos": (np.cos, wide),
            "tanh": (np.tanh, wide), "floor": (np.floor, wide), "ceil": (np.ceil, wide), "round": (np.round, wide),
            "relu": (lambda x: np.maximum(x, 0), wide), "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), wide),
            "silu": (lambda x: x / (1 + np.exp(-x)), wide), "softplus": (lambda x: np.log1p(np.exp(x)), wide),
            "isnan": (np.isnan, wide), "isfinite": (np.isfinite, wide),
        }
        for name, (function, (low, high)) in functions.items():
            for layout, a in self.arrays(low, high):
                self.close(getattr(tenon, name)(self.of(a)), function(a), name + " " + layout)

    def test_functions_of_two(self):
        functions = {
            "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
            "minimum": np.minimum, "remainder": np.mod, "pow": np.power, "eq": np.equal, "ne": np.not_equal,
            "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
        }
        for name, function in functions.items():
            for layout, a in self.arrays(0.5, 2):
                b = np.linspace(0.6, 1.9, a.shape[-1]).astype(a.dtype)
                self.close(getattr(tenon, name)(self.of(a), tenon.from_numpy(b)), function(a, b), name + " " + layout)
        i = np.arange(-6, 6).reshape(3, 4)
        for name, function in {"add": np.add, "mul": np.multiply, "remainder": np.mod, "lt": np.less}.items():
            self.close(getattr(tenon, name)(tenon.from_numpy(i), 3), function(i, 3), name + " of i64")

    def test_reductions(self):
        functions = {
            "sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.amax, "amin": np.amin,
            "std": lambda a, axis, keepdims: np.std(a, axis=axis, ddof=1, keepdims=keepdims),
            "var": lambda a, axis, keepdims: np.var(a, axis=axis, ddof=1, keepdims=keepdims),
            "logsumexp": lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis=axis, keepdims=keepdims)),
            "norm": lambda a, axis, keepdims: np.sqrt(np.sum(a * a, axis=axis, keepdims=keepdims)),
        }
        for name, function in functions.items():
            for layout, a in self.arrays():
                if layout == "empty":
                    continue
                for dims, keep in (((1,), False), ((0, 2), True)):
                    self.close(getattr(tenon, name)(self.of(a), dims, keepdim=keep),
                               function(a, axis=dims, keepdims=keep), "%s %s %s" % (name, layout, dims))
        for layout, a in self.arrays():
            if layout != "empty":
                self.close(tenon.argmax(self.of(a), 1), np.argmax(a, 1), "argmax " + layout)
                self.close(tenon.cumsum(self.of(a), 2), np.cumsum(a, 2), "cumsum " + layout)
                e = np.exp(a - a.max(1, keepdims=True))
                self.close(tenon.softmax(self.of(a), 1), e / e.sum(1, keepdims=True), "softmax " + layout)
                self.close(tenon.sort(self.of(a), 0).values, np.sort(a, 0), "sort " + layout)
                self.close(tenon.sort(self.of(a), 0).indices, np.argsort(a, 0, kind="stable"), "sort " + layout)

    def test_layouts(self):
        for layout, a in self.arrays():
            t = self.of(a)
            cases = {
                "permute": (t.permute(2, 0, 1), a.transpose(2, 0, 1)), "flip": (t.flip((0, 2)), np.flip(a, (0, 2))),
                "roll": (t.roll(2, 1), np.roll(a, 2, 1)), "tril": (t.tril(1), np.tril(a, 1)),
                "triu": (t.triu(-1), np.triu(a, -1)), "tile": (t.repeat(2, 1, 3), np.tile(a, (2, 1, 3))),
                "repeat": (t.repeat_interleave(2, 1), np.repeat(a, 2, 1)), "index": (t[1, :, ::3], a[1, :, ::3]),
                "pad": (t.pad((1, 0, 2), (0, 1, 0)), np.pad(a, ((1, 0), (0, 1), (2, 0)))),
                "cat": (tenon.cat([t, t], 2), np.concatenate([a, a], 2)),
                "stack": (tenon.stack([t, t]), np.stack([a, a])),
                "flatten": (t.flatten(1), a.reshape(len(a), -1)),
                "where": (tenon.where(t > 0, t, 0.0), np.where(a > 0, a, 0)),
                "mask": (t[t > 0], a[a > 0]), "clamp": (t.clamp(-1, 1), np.clip(a, -1, 1)),
                "take": (t[:, :, [4, 0]], a[:, :, [4, 0]]), "diagonal": (t.diagonal(0, 0, 2), np.diagonal(a, 0, 0, 2)),
            }
            for name, (made, wanted) in cases.items():
                self.close(made, wanted, name + " " + layout)

    def test_products(self):
        rng = np.random.default_rng(6)
        for dtype in (np.float32, np.float64):
            shapes = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((7,), (7,))]
            for left, right in shapes:
                a, b = rng.normal(size=left).astype(dtype), rng.normal(size=right).astype(dtype)
                self.close(tenon.from_numpy(a) @ tenon.from_numpy(b), a @ b, "matmul %s" % (left,))
            a, b = rng.normal(size=(2, 3, 4)).astype(dtype), rng.normal(size=(5, 4)).astype(dtype)
            made = tenon.einsum("bij,kj->bik", [tenon.tensor(a), tenon.tensor(b)])
            self.close(made, np.einsum("bij,kj->bik", a, b), "einsum")
            self.close(tenon.linear(tenon.tensor(a), tenon.tensor(b)), a @ b.T, "linear")
            self.close(tenon.outer(tenon.tensor(a[0, 0]), tenon.tensor(b[0])), np.outer(a[0, 0], b[0]), "outer")

    def test_numpy_shares_memory(self):
        for dtype in (np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_):
            a = np.arange(24).reshape(2, 3, 4).astype(dtype)
            for view in (a, a.T, a.transpose(1, 0, 2), a[1], a[:, :1][:1]):
                t = tenon.from_numpy(view)
                self.assertEqual(t.data_ptr(), view.__array_interface__["data"][0])
                back = t.numpy()
                self.assertEqual(back.__array_interface__["data"][0], t.data_ptr())
                self.assertEqual((back.dtype, back.tolist()), (view.dtype, view.tolist()))
            t = tenon.from_numpy(a)
            a[1, 2, 3] = 1
            self.assertEqual(t[1, 2, 3].item(), 1)
            t.numpy()[0, 0, 0] = 1
            self.assertEqual(a[0, 0, 0], 1)
            sliced = t[:, 1:, ::2].numpy()
            self.assertEqual(sliced.tolist(), a[:, 1:, ::2].tolist())
            self.assertEqual(sliced.__array_interface__["data"][0], a[:, 1:, ::2].__array_interface__["data"][0])
            if dtype is np.bool_ and np.lib.NumpyVersion(np.__version__) < "1.25.0":
                self.assertRaisesRegex(RuntimeError, "Unsupported dtype", np.from_dlpack, t)  # its DLPack has no bool
                continue
            a = np.from_dlpack(t)
            self.assertEqual(a.__array_interface__["data"][0], t.data_ptr())
            if dtype is not np.bool_:
                self.assertEqual(tenon.from_dlpack(t.numpy()).data_ptr(), t.data_ptr())
        array = tenon.arange(1000).numpy()
        gc.collect()
        self.assertEqual(array.sum(), 499500)  # the array keeps the tensor
        t = tenon.from_numpy(np.arange(1000.0))
        gc.collect()
        self.assertEqual(t.sum().item(), 499500)  # the tensor keeps the array
        x = tenon.ones(3).requires_grad_()
        self.assertFalse(x.numpy().flags.writeable)
        self.assertTrue(x.detach().numpy().flags.writeable)
        self.assertFalse(tenon.ones(1).expand(3).numpy().flags.writeable)
        self.assertEqual(tenon.zeros(0, 3).numpy().shape, (0, 3))
        self.assertEqual(np.asarray(tenon.tensor(2.0)).shape, ())
        self.assertRaises(ValueError, tenon.from_numpy, np.arange(10)[::2])
        self.assertRaises(TypeError, tenon.from_numpy, np.zeros(2, np.float16))
        self.assertRaises(TypeError, np.asarray, tenon.ones(2, dtype="bf16"))
        self.assertEqual(tenon.tensor(np.arange(10)[::-3]).tolist(), [9, 6, 3, 0])
        self.assertIsInstance(np.ones(2) * tenon.ones(2, dtype="f64"), tenon.Tensor)
        self.assertEqual(tenon.arange(5)[np.int64(3)].item(), 3)
        self.assertEqual((tenon.ones(2) * np.float32(2)).tolist(), [2, 2])
        self.assertEqual(tenon.zeros(2, dtype=np.float64).dtype, tenon.f64)

    def test_arrays_do_not_leak(self):
        size = None
        for i in range(10000):
            t = tenon.from_numpy(np.empty(1000, np.float32))
            t.numpy()[0] = 1
            np.from_dlpack(t)
            del t
            if i == 1000:
                gc.collect()
                size, live = resident(), tenon.memory()["live"]
        gc.collect()
        self.assertLess(resident() - size, 4 << 20)
        self.assertLessEqual(abs(tenon.memory()["live"] - live), 1 << 16)
        self.assertEqual(tenon._library.lent, {})

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        torch.set_num_threads(1)
        F = torch.nn.functional
        t = tenon.arange(6).view(2, 3).T
        p = torch.from_dlpack(t)
        self.assertEqual((p.data_ptr(), p.stride(), p.tolist()), (t.data_ptr(), t.strides, t.tolist()))
        back = tenon.from_dlpack(p)
        self.assertEqual(back.data_ptr(), t.data_ptr())
        b = tenon.from_dlpack(torch.ones(3, dtype=torch.bfloat16))
        self.assertEqual((b.dtype, b.tolist()), (tenon.bf16, [1, 1, 1]))
        self.assertEqual(tenon.zeros(2, dtype=torch.int32).dtype, tenon.i32)
        self.assertEqual(tenon.tensor(torch.arange(3)).tolist(), [0, 1, 2])
        ops = {
            "exp": "exp", "log1p": "log1p", "tanh": "tanh", "sigmoid": "sigmoid", "erf": "erf", "rsqrt": "rsqrt",
            "gelu": F.gelu, "silu": F.silu, "mish": F.mish, "softplus": F.softplus, "elu": F.elu, "square": "square",
            "leaky_relu": F.leaky_relu, "logsigmoid": F.logsigmoid, "sin": "sin", "reciprocal": "reciprocal",
        }
        rng = np.random.default_rng(8)
        calls = {name: (getattr(tenon, name), f if callable(f) else getattr(torch, f)) for name, f in ops.items()}
        target = np.array([1, 0, 3])
        calls.update({
            "softmax": (lambda x: x.softmax(1), lambda x: x.softmax(1)),
            "log_softmax": (lambda x: x.log_softmax(0), lambda x: x.log_softmax(0)),
            "logsumexp": (lambda x: x.logsumexp(1), lambda x: x.logsumexp(1)),
            "norm": (lambda x: x.norm((1,), p=3), lambda x: x.norm(3, 1)),
            "std": (lambda x: x.std(0), lambda x: x.std(0)), "prod": (lambda x: x.prod(1), lambda x: x.prod(1)),
            "matmul": (lambda x: x @ x.T, lambda x: x @ x.T), "cumsum": (lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
            "layer_norm": (lambda x: x.layer_norm(), lambda x: F.layer_norm(x, (4,))),
            "cross_entropy": (lambda x: tenon.cross_entropy(x, tenon.tensor(target), label_smoothing=0.1),
                              lambda x: F.cross_entropy(x, torch.tensor(target), label_smoothing=0.1)),
            "huber": (lambda x: tenon.huber_loss(x, x * 0), lambda x: F.huber_loss(x, x * 0)),
            "kl_div": (lambda x: tenon.kl_div(x.log_softmax(1), x.softmax(0), reduction="sum"),
                       lambda x: F.kl_div(x.log_softmax(1), x.softmax(0), reduction="sum")),
            "attention": (lambda x: tenon.attention(x, x, x, causal=True),
                          lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=True)[0]),
            "index": (lambda x: x[1:, ::2], lambda x: x[1:, ::2]), "pow": (lambda x: x ** 2.5, lambda x: x ** 2.5),
            "mask": (lambda x: x[x > 1], lambda x: x[x > 1]), "max": (lambda x: x.max(1)[0], lambda x: x.max(1)[0]),
            "conv1d": (lambda x: tenon.conv1d(x.view(1, 3, 4), x.view(2, 3, 2), padding=1),
                       lambda x: F.conv1d(x.view(1, 3, 4), x.view(2, 3, 2), padding=1)),
        })
        for name, (ours, theirs) in calls.items():
            a = rng.uniform(0.2, 2, (3, 4))
            x, y = tenon.tensor(a).requires_grad_(), torch.tensor(a, requires_grad=True)
            made, wanted = ours(x), theirs(y)
            self.close(made.detach(), wanted.detach().numpy(), name, 1e-10)
            made.square().sum().backward()
            wanted.square().sum().backward()
            self.close(x.grad, y.grad.numpy(), "gradient of " + name, 1e-9)


class Models(unittest.TestCase):
    def path(self, name):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            self.skipTest(name + " was not made")
        return path

    def read(self, name):
        with open(self.path(name), encoding="utf8") as f:
            return f.read()

    def test_encoder(self):
        m = tenon.open(self.path("bert"))
        self.assertEqual((m.family, m.type), ("encoder", "modernbert"))
        texts = ["the cat sees the dog", "a dog", "the cat sees the cat"]
        v = m.embed(texts)
        self.assertEqual(v.shape, (3, 128))
        self.assertTrue(tenon.allclose(v.norm((1,)), tenon.ones(3), 1e-5, 1e-5))
        shown = [[float(w) for w in line.split()] for line in self.read("bert.embedded").splitlines()]
        self.assertTrue(tenon.allclose(v, shown, 1e-4, 1e-4))  # as `bert embed` prints
        batch = m.tokenizer.batch(texts)
        y = m(batch.ids, key_padding_mask=batch.key_padding_mask)
        self.assertEqual(y.shape, batch.ids.shape + (128,))
        with tenon.look("**.self_attn.weights", "bert.encoder.layers.*") as seen:
            again = m(batch.ids, key_padding_mask=batch.key_padding_mask)
        self.assertTrue(tenon.allclose(again, y, 0, 0))
        paths = [p for p in seen if p.endswith("weights")]
        self.assertEqual(len(paths), len(seen) - len(paths))
        weights = seen[paths[0]]
        self.assertEqual(weights.shape[0], 3)
        self.assertTrue(tenon.allclose(weights[1].sum(2), tenon.ones(*weights.shape[1:3]), 1e-5, 1e-5))
        self.assertIn("was not recorded", str(self.error(lambda: seen["bert"])))
        self.assertIn("does not generate", str(self.error(m.generate, "the cat")))
        self.assertIn("weight", str(m) + " weight")

    def error(self, function, *arguments):
        with self.assertRaises(tenon.Error) as caught:
            function(*arguments)
        return caught.exception

    def test_activations_have_gradients(self):
        m = tenon.open(self.path("bert"))
        ids = m.tokenizer.batch(["the cat sees the dog"]).ids
        seen = tenon.look("**.self_attn.weights", grad=True)
        with seen:
            loss = m(ids).square().sum()
        seen.backward(loss)
        path = seen.keys()[-1]
        self.assertEqual(seen.grad(path).shape, seen[path].shape)
        self.assertTrue(bool(seen.grad(path).abs().sum() > 0))
        self.assertTrue(all(p.grad is None for p in m.parameters()))

    def test_state_dict(self):
        m, other = tenon.open(self.path("bert")), tenon.open(self.path("bert"))
        state = m.state_dict()
        self.assertGreater(len(state), 20)
        name, t = next(iter(state.items()))
        self.assertEqual(t.data_ptr(), dict(m.named_parameters())[name].data_ptr())
        with tenon.no_grad():
            for p in other.parameters():
                p.mul_scalar_(0)
        ids = m.tokenizer.batch(["the cat"]).ids
        self.assertFalse(tenon.allclose(m(ids), other(ids)))
        self.assertIn("missing", str(self.error(other.load_state_dict, {name: t})))
        self.assertFalse(tenon.allclose(m(ids), other(ids)))
        self.assertEqual(self.error(other.load_state_dict, {**state, name: tenon.ones(1)}).status, "TN_ESHAPE")
        other.load_state_dict(state)
        self.assertTrue(tenon.allclose(m(ids), other(ids), 0, 0))
        with tempfile.TemporaryDirectory() as at:
            tenon.save(state, os.path.join(at, "s.safetensors"))
            other.load_state_dict(tenon.load(os.path.join(at, "s.safetensors")))
            m.save(at)
            self.assertTrue(tenon.allclose(tenon.open(at)(ids), m(ids), 0, 0))
        del m, other, state
        gc.collect()
        self.assertGreater(abs(t.sum().item()), 0)  # a parameter outlives its model

    def test_a_model_is_trained(self):
        m = tenon.open(self.path("gpt")).train()
        ids = tenon.tensor([m.tokenizer.encode("the cat sees the dog and a cat")])
        losses = []
        for _ in range(8):
            logits = m(ids[:, :-1])
            loss = tenon.cross_entropy(logits.flatten(0, 1), ids[0, 1:])
            loss.backward()
            losses.append(loss.item())
            with tenon.no_grad():
                for p in m.parameters():
                    if p.grad is not None:
                        p -= 0.1 * p.grad
            m.zero_grad()
        self.assertLess(losses[-1], losses[0])

    def test_language_model(self):
        m = tenon.open(self.path("gpt"))
        self.assertEqual((m.family, m.type), ("decoder", "gpt2"))
        prompt = "the cat"
        made = m.generate(prompt, tokens=20)
        self.assertEqual(prompt + made, self.read("gpt.written"))  # as `gpt write --temperature 0`
        self.assertEqual(m.generate([prompt, prompt], tokens=20), [made, made])
        tenon.seed(3)
        one = m.generate(prompt, tokens=20, sample=True, temperature=1.5)
        tenon.seed(3)
        self.assertEqual(m.generate(prompt, tokens=20, sample=True, temperature=1.5), one)
        ids = tenon.tensor(m.tokenizer.encode(prompt))
        self.assertEqual(m.generate(ids, tokens=5, beams=2, best=2).shape[:2], (1, 2))
        logits = m(ids.unsqueeze(0))
        self.assertEqual(logits.shape, (1, len(ids), len(m.tokenizer)))
        first = m.generate(ids, tokens=1, end=-1)[0, 0, 0].item()
        self.assertEqual(first, logits[0, -1].argmax().item())
        seen = []
        m.generate(ids, tokens=6, end=-1, each=lambda token: seen.append(token) or len(seen) < 3)
        self.assertEqual(seen, m.generate(ids, tokens=3, end=-1).view(-1).tolist())
        with self.assertRaises(ZeroDivisionError):
            m.generate(ids, tokens=6, each=lambda token: 1 // 0)
        self.assertIn("embed: needs an encoder", str(self.error(m.embed, "the cat")))
        self.assertIn("positions", str(self.error(m.generate, prompt, 100000)))
        with self.assertRaises(TypeError):
            m.generate(prompt, tokens=5, temprature=1)

    def test_several_end_tokens(self):
        m = tenon.open(self.path("gpt"))
        prompt, last = "the cat", m.tokenizer.special["last"]
        ids = tenon.tensor(m.tokenizer.encode(prompt))
        made = m.generate(ids, tokens=6, end=-1).view(-1).tolist()
        self.assertEqual(m.generate(ids, tokens=5, beams=2).shape[:2], (1, 1))  # both files have the same end token
        with tempfile.TemporaryDirectory() as at:
            m.save(at)
            with open(os.path.join(at, "generation_config.json"), "w") as f:
                f.write('{"eos_token_id": [%d, %d]}' % (last, made[2]))
            os.remove(os.path.join(at, "SHA256SUMS"))  # the changed file is intended
            m = tenon.open(at)
        short = made[: made.index(made[2]) + 1]
        self.assertNotIn(last, made)
        self.assertEqual(m.generate(ids, tokens=6).view(-1).tolist(), short)
        self.assertEqual(m.generate(prompt, tokens=6), m.tokenizer.decode(short[:-1]))
        error = self.error(lambda: m.generate(ids, tokens=6, beams=2))
        self.assertEqual(str(error), "generate: the model has 2 end tokens, but beams support one; pass end=ID")
        self.assertEqual(m.generate(ids, tokens=6, beams=2, end=last).shape[:2], (1, 1))
        seen = []
        m.generate(ids, tokens=6, each=seen.append)
        self.assertEqual(seen, short)
        for end, wanted in ((-1, made), (last, made), (made[1], made[: made.index(made[1])])):
            seen = []
            text = m.generate(prompt, tokens=6, end=end, each=seen.append)
            self.assertEqual([t for t in seen if t != end], wanted)
            self.assertEqual(text, m.tokenizer.decode(wanted))

    def test_translation(self):
        m = tenon.open(self.path("translate"))
        self.assertEqual(m.family, "seq2seq")
        lines = self.read("translate.src").splitlines()[:4]
        made = m.generate(lines, tokens=20)
        self.assertEqual(made, self.read("translate.made").splitlines())  # as `translate run --beam 1`

        batch = m.tokenizer.batch(lines)  # each line ends with </s>, as in training
        self.assertEqual([m.tokenizer.encode(l)[-1] for l in lines], [m.tokenizer.id("</s>")] * 4)
        logits = m(batch.ids, tenon.tensor([[m.target.special["first"]]] * 4))
        self.assertEqual(logits.shape, (4, 1, len(m.target)))

    def test_classifier(self):
        m = tenon.open(self.path("tuned"))
        self.assertEqual(m.family, "tuned")
        self.assertEqual(m(m.tokenizer.batch(["the cat", "a dog"]).ids).shape, (2, 2))
        self.assertEqual(tenon.open(self.path("tuned"), family="encoder").embed("the cat").shape, (1, 128))

    def test_images(self):
        m = tenon.open(self.path("vit"))
        self.assertEqual(m.family, "images")
        self.assertEqual(m(tenon.normal(2, 1, 8, 8)).shape, (2, 2))

    def test_stories(self):
        at = os.path.join(root, "..", "shared", "data", "stories260K")
        if not os.path.exists(at):
            self.skipTest("stories260K is not next to the checkout")
        m = tenon.open(os.path.join(at, "stories260K.bin"), tokenizer=os.path.join(at, "tok512.bin"))
        self.assertTrue(m.generate("Once upon a time", tokens=40).startswith(", there was a little girl named Lily."))

    def test_tokenizers(self):
        t = tenon.open(self.path("bert")).tokenizer  # outlives the other parts of its model
        gc.collect()
        text = "the cat sees the dog"
        ids = t.encode(text)
        self.assertEqual(t.decode(ids), text)
        for id in (len(t), -1, 2**31, 2**32 + ids[1], -(2**32) + ids[1], 2**64 + ids[1]):
            error = self.error(t.decode, [ids[0], id])
            self.assertEqual(error.status, "TN_EINDEX")
            self.assertEqual(str(error), "tn_tokenizer_decode: ids[1] is %d, expected a token id from 0 to %d"
                             % (id, len(t) - 1))
        self.assertEqual(self.error(t.decode, tenon.tensor([2**32 + ids[1]])).status, "TN_EINDEX")
        e = t.encoding(text, max_length=4)
        self.assertEqual((len(e.ids), e.special[0]), (4, 1))
        self.assertEqual(text.encode()[e.starts[1] : e.ends[1]], b"the")
        self.assertEqual(t.encode(text, bare=True), ids[1:-1])
        pair = t.encoding("the cat", "a dog")
        self.assertEqual(set(pair.segments), {0, 1})
        self.assertEqual(t.token(t.special["mask"]), "[MASK]")
        self.assertEqual(t.id("[MASK]"), t.special["mask"])
        self.assertIsNone(t.id("no such token"))
        batch = t.batch(["the cat", "the cat sees the dog"])
        self.assertEqual(batch.key_padding_mask[0].tolist()[-2:], [True, True])
        with self.assertRaises(ValueError):
            t.batch(["a\0b"])
        learned = tenon.Tokenizer.train("the cat sees the dog\n" * 50, kind="byte_bpe", vocab_size=300)
        self.assertEqual(learned.decode(learned.encode("the dog sees ümläut")), "the dog sees ümläut")
        with tempfile.TemporaryDirectory() as at:
            learned.save(at)
            self.assertEqual(tenon.Tokenizer(at).encode("the dog"), learned.encode("the dog"))

    def test_models_do_not_leak(self):
        before = None
        gc.disable()  # a model is freed at once, not by a search for cycles
        for i in range(6):
            m = tenon.open(self.path("gpt"))
            m.generate("the cat", tokens=3)
            tokenizer = m.tokenizer
            del m, tokenizer
            if i == 1:
                before = tenon.memory()["live"]
        gc.enable()
        self.assertLessEqual(tenon.memory()["live"] - before, 1 << 16)


def notebook():
    """Runs the Python blocks of the guide's page as the cells of a notebook, and compares what they print."""
    import nbclient
    import nbformat

    with open(os.path.join(root, "docs", "guide", "python.md"), encoding="utf8") as f:
        blocks = f.read().split("```")
    cells = [b[len("python\n") :] for b in blocks[1::2] if b.startswith("python\n")]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    nbclient.NotebookClient(book, timeout=60, resources={"metadata": {"path": folder}}).execute()
    printed = "".join(o.text for c in book.cells for o in c.outputs if o.output_type == "stream")
    shown = "".join(b[len("text\n") :] for b in blocks[1::2] if b.startswith("text\n"))
    if printed != shown:
        sys.exit("the notebook prints:\n%s\nthe page:\n%s" % (printed, shown))
    print("notebook: %d cells" % len(cells))


if __name__ == "__main__":
    part = sys.argv[1]
    if part == "notebook":
        notebook()
        sys.exit()
    if part == "arrays":
        import numpy as np
    kind = {"alone": Alone, "arrays": Arrays, "models": Models}[part]
    result = unittest.TextTestRunner(verbosity=1).run(unittest.defaultTestLoader.loadTestsFromTestCase(kind))
    if part == "arrays":
        print("%d comparisons" % Arrays.count)
        if Arrays.count < 300:
            sys.exit("fewer than 300 comparisons")
    sys.exit(not result.wasSuccessful())
