//! A port by which a virtual machine can be reached from its host (`AF_VSOCK`).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::error::{Error, Result};

/// The maximum number of clients waiting to be accepted.
const WAITING: i32 = 128;

struct Address(libc::sockaddr_vm);

// SAFETY: the pointer refers to a complete `sockaddr_vm`, which is borrowed for longer than the call, and the
// length is that of this structure.
unsafe impl SocketAddrArg for Address {
    unsafe fn with_sockaddr<R>(
        &self,
        f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R,
    ) -> R {
        let length = SocketAddrLen::try_from(size_of_val(&self.0)).unwrap_or(0);
        f((&raw const self.0).cast(), length)
    }
}

/// Listens at a port, for all addresses.
pub(super) fn open(port: u32) -> Result<OwnedFd> {
    let address = Address(libc::sockaddr_vm {
        svm_family: AddressFamily::VSOCK.as_raw(),
        svm_reserved1: 0,
        svm_port: port,
        svm_cid: libc::VMADDR_CID_ANY,
        svm_zero: [0; 4],
    });
    let opened = socket_with(AddressFamily::VSOCK, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .and_then(|socket| {
            bind(&socket, &address)?;
            listen(&socket, WAITING)?;
            Ok(socket)
        });
    opened.map_err(|e| listen_error(port, e))
}

fn listen_error(port: u32, error: rustix::io::Errno) -> Error {
    use rustix::io::Errno;
    let advice = match error {
        Errno::ADDRINUSE => return Error::listens(format!("vsock port {port}")),
        Errno::AFNOSUPPORT | Errno::NODEV | Errno::ADDRNOTAVAIL => {
            "; this kernel has no vsock: inside a VM it comes with its device and the driver vmw_vsock_virtio_transport, and --unix and --stdio need none"
        }
        Errno::ACCESS => "; ports below 1024 are for root: choose another",
        Errno::PERM => "; whatever confines this process does not let it have one",
        _ => "",
    };
    Error::failed(format!("cannot listen at vsock port {port}: {}{advice}", io::Error::from(error)))
}
