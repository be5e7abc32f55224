//! Calls of etcd over gRPC, and the runtime that serves them.

use super::authenticating::{AUTHENTICATE, Login, Token};
use super::codec::Messages;
use super::connecting::{Server, servers};
use super::failing::CallError;
use super::options::EtcdOptions;
use hotrow_sync::Arc;
use hotrow_sync::atomic::{AtomicU64, Ordering};
use hotrow_sync::clock::{Duration, Instant, now};
use prost::Message;
use std::future::Future;
use std::io;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codec::Streaming;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::tokio_stream::{Stream, StreamExt, iter, once, pending};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A client of an etcd cluster.
pub(super) struct Client {
    /// `None` while it is dropped.
    runtime: Option<Runtime>,
    caller: Arc<Caller>,
}

/// The connections of a client, as its calls share them.
pub(super) struct Caller {
    servers: Vec<Server>,
    /// The server in use, modulo their number.
    server: AtomicU64,
    call_max: Duration,
    login: Option<Login>,
}

impl Client {
    /// Prepares connections, which are made when they are needed.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if there is no server, its address is none, the certificates do not fit, or the system gives no thread.
    pub(super) fn new(addresses: &[String], options: &EtcdOptions) -> io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("hotrow-etcd").enable_all().build()?;
        let servers = {
            let _context = runtime.enter();
            servers(addresses, options)?
        };
        let login = options.user.clone().map(Login::new);
        let (server, call_max) = (AtomicU64::new(0), options.call_max);
        let caller = Arc::new(Caller { servers, server, call_max, login });
        Ok(Self { runtime: Some(runtime), caller })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the client is dropped")
    }

    /// Runs a task on the runtime's thread, and does not wait for it.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(task);
    }

    /// The connections, for tasks.
    pub(super) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// Calls etcd once, and waits for the answer until the deadline, or as long as a call may take.
    pub(super) fn call<E, D>(&self, path: &'static str, message: E, deadline: Instant) -> Result<D, CallError>
    where
        E: Message + Clone + 'static,
        D: Message + Default + 'static,
    {
        let caller = Arc::clone(&self.caller);
        // A task of the runtime: the future of a call is woken several times, and a task costs less to wake than this thread.
        let calling = self.runtime().spawn(async move { caller.call(path, message, deadline).await });
        self.runtime().block_on(calling).unwrap_or_else(|_| Err(CallError::panicked()))
    }

    /// Waits on this thread for what the runtime does.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime().block_on(future)
    }

    /// Opens a stream with requests that are not followed by others, and hands its answers to `receive`, until the deadline; `None` if it
    /// passes.
    pub(super) fn stream<E, D, T, F>(
        &self,
        path: &'static str,
        requests: Vec<E>,
        deadline: Instant,
        receive: impl Fn(Streaming<D>) -> F,
    ) -> Result<Option<T>, CallError>
    where
        E: Message + Clone + 'static,
        D: Message + Default + 'static,
        F: Future<Output = Result<T, Status>>,
    {
        let time = deadline.saturating_duration_since(now());
        // etcd ends the stream when the requests end.
        let requests = || iter(requests.clone()).chain(pending());
        let caller = &self.caller;
        let streaming =
            caller.with_token(deadline, |token| caller.stream_as(path, requests(), token, &receive));
        let answer = self.runtime().block_on(async { timeout(time, streaming).await });
        answer.map_or(Ok(None), |answer| answer.map(Some))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Does not wait, so that it may be dropped on a thread of another runtime.
            runtime.shutdown_background();
        }
    }
}

impl Caller {
    /// Goes on to the next server, if nobody has done so since.
    fn leave(&self, server: u64) {
        let next = server.wrapping_add(1);
        // Relaxed: any server will do.
        let _ = self.server.compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Calls etcd once, until the deadline, or for as long as a call may take.
    pub(super) async fn call<E, D>(
        &self,
        path: &'static str,
        message: E,
        deadline: Instant,
    ) -> Result<D, CallError>
    where
        E: Message + Clone + 'static,
        D: Message + Default + 'static,
    {
        self.with_token(deadline, |token| self.call_as(path, message.clone(), token, deadline)).await
    }

    /// Calls with a token, and once more with a new one if that may help.
    async fn with_token<T, F: Future<Output = Result<T, CallError>>>(
        &self,
        deadline: Instant,
        call: impl Fn(Token) -> F,
    ) -> Result<T, CallError> {
        let Some(login) = &self.login else { return call(None).await.map_err(CallError::without_user) };
        let ask = |request| self.call_as(AUTHENTICATE, request, None, deadline);
        let token = login.token(None, ask).await?;
        match call(token.clone()).await {
            Err(error) if error.may_want_token() => call(login.token(Some(&token), ask).await?).await,
            answer => answer,
        }
    }

    /// Calls etcd once with a token.
    pub(super) async fn call_as<E, D>(
        &self,
        path: &'static str,
        message: E,
        token: Token,
        deadline: Instant,
    ) -> Result<D, CallError>
    where
        E: Message + 'static,
        D: Message + Default + 'static,
    {
        let time = deadline.saturating_duration_since(now()).min(self.call_max);
        let request = request_with(message, token);
        let call = |mut grpc: Grpc<Channel>| async move {
            grpc.unary(request, PathAndQuery::from_static(path), Messages::<E, D>::default()).await
        };
        Ok(self.attempt(time, call).await?.into_inner())
    }

    async fn stream_as<E, D, T, F>(
        &self,
        path: &'static str,
        requests: impl Stream<Item = E> + Send + 'static,
        token: Token,
        receive: impl Fn(Streaming<D>) -> F,
    ) -> Result<T, CallError>
    where
        E: Message + 'static,
        D: Message + Default + 'static,
        F: Future<Output = Result<T, Status>>,
    {
        let request = request_with(requests, token);
        let call = |mut grpc: Grpc<Channel>| async move {
            let path = PathAndQuery::from_static(path);
            receive(grpc.streaming(request, path, Messages::<E, D>::default()).await?.into_inner()).await
        };
        self.attempt(Duration::MAX, call).await
    }

    /// Opens a stream for one request and one answer.
    pub(super) async fn exchange<E, D>(
        &self,
        path: &'static str,
        message: E,
        deadline: Instant,
    ) -> Result<D, CallError>
    where
        E: Message + Clone + 'static,
        D: Message + Default + 'static,
    {
        let first = |mut answers: Streaming<D>| async move {
            let answer = answers.message().await?;
            answer.ok_or_else(|| Status::unavailable("etcd has ended the stream"))
        };
        let call = |token| self.stream_as(path, once(message.clone()), token, first);
        let time = deadline.saturating_duration_since(now());
        timeout(time, self.with_token(deadline, call)).await.unwrap_or_else(|_| Err(CallError::too_late()))
    }

    /// Makes a call of the server in use, for as long as given.
    async fn attempt<T, F: Future<Output = Result<T, Status>>>(
        &self,
        time: Duration,
        call: impl FnOnce(Grpc<Channel>) -> F,
    ) -> Result<T, CallError> {
        // A request that is polled once may be sent.
        if time.is_zero() {
            return Err(CallError::too_late());
        }
        // Relaxed: any server will do.
        let number = self.server.load(Ordering::Relaxed);
        let Server { address, channel } = &self.servers[number as usize % self.servers.len()];
        let grpc = Grpc::new(channel.clone());
        let mut grpc = grpc.max_decoding_message_size(usize::MAX).max_encoding_message_size(usize::MAX);
        let calling = async {
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            call(grpc).await
        };
        let error = match timeout(time, calling).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => CallError::new(address, &status),
            Err(_) => CallError::late(address),
        };
        if error.is_of_server() {
            self.leave(number);
        }
        Err(error)
    }
}

fn request_with<T>(message: T, token: Token) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}
