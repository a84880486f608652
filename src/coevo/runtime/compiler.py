"""Compiles kernels with Numba, each function once.

Numba optimises a function and generates machine code for it, and does both again for each function
that calls it, as that contains a copy. Here a kernel for other kernels is only translated to LLVM's
intermediate code; it is optimised, and becomes machine code, within the kernels that Python calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from numba import _dynfunc, njit, types  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.dispatcher import Dispatcher
from numba.core.event import Event, Listener, register
from numba.np.numpy_support import as_dtype

from coevo.runtime.jit import compilations
from coevo.runtime.kernel_cache import KernelCache


def make_entry(function: Callable[..., Any], fast_math: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function for Python to call."""
    entry: Callable[..., Any] = _decorate(function, fast_math)
    if isinstance(entry, Dispatcher):  # not if the JIT is switched off
        with suppress(RuntimeError):  # Numba found no folder for its cache
            entry._cache = KernelCache(function)  # type: ignore[attr-defined]
    return entry


def make_inner(function: Callable[..., Any], fast_math: tuple[str, ...]) -> Dispatcher:
    """Return a function for kernels to call.

    With fast-math flags it is optimised by itself and then inlined, so that all callers get
    bit-identical results.
    """
    inner: Dispatcher = _decorate(
        function, fast_math, no_cpython_wrapper=True, pipeline_class=_InnerCompiler,
        forceinline=bool(fast_math),
    )  # fmt: skip
    return inner


def _decorate(function: Callable[..., Any], fast_math: tuple[str, ...], **options: Any) -> Any:
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    # If fastmath is not set, a function inherits that of its first caller.
    return njit(function, fastmath=set(fast_math) or False, **options)


class _InnerLibrary(JITCodeLibrary):
    """Code that is copied into other libraries."""

    is_fast_math = False

    def _optimize_final_module(self) -> None:
        if self.is_fast_math:
            super()._optimize_final_module()  # type: ignore[no-untyped-call]

    def _finalize_final_module(self) -> None:
        self._finalized = True


def _make_unexecutable(library: Any, description: Any, environment: Any) -> Any:
    """Return a placeholder for a function without machine code."""
    module, name = description.lookup_module(), description.qualname
    return _dynfunc.make_function(module, name, "", 0, environment, (library,))


class _InnerCompiler(Compiler):
    def define_pipelines(self) -> Any:
        """Replace the stages after the intermediate code."""
        state: Any = self.state
        library: Any = _InnerLibrary
        state.library = library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.is_fast_math = bool(state.flags.fastmath)
        state.targetctx.get_executable = _make_unexecutable  # this function's own context
        return super().define_pipelines()  # type: ignore[no-untyped-call]


class Chooser:
    """The dispatcher of a `Choice`, which delegates to that of the chosen kernel."""

    is_compiling = False  # Numba asks, because of recursive functions

    def __init__(self, kernels: Mapping[type, Any]) -> None:
        self._kernels = kernels
        self.numba_type = types.Dispatcher(self)  # type: ignore[type-var]

    def _choose(self, first: Any) -> Any:
        kind = getattr(first, "instance_class", None) or as_dtype(first).type
        return self._kernels[kind].inner

    def get_call_template(self, arguments: Any, keywords: Any) -> Any:
        """Compile the chosen kernel for arguments of these types."""
        return self._choose(arguments[0]).get_call_template(arguments, keywords)

    def get_overload(self, arguments: Any) -> Any:
        """Return the chosen kernel, compiled."""
        return self._choose(arguments[0]).get_overload(arguments)


class _Reporter(Listener):
    def on_start(self, event: Event) -> None:
        compilations.begin(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Event) -> None:
        compilations.end()


register("numba:compile", _Reporter())  # type: ignore[no-untyped-call]
