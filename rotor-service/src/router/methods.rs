//! Routes for the usual methods: short forms of `Router::on`.

use rotor_http::Method;

use super::{RouteHandler, Router};
use crate::routes::RouteError;

impl<C: 'static> Router<C> {
    /// Adds a function for GET and HEAD; see [`on`](Router::on).
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn get<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Get, path, function)
    }

    /// Adds a function for POST; see [`on`](Router::on).
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn post<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Post, path, function)
    }

    /// Adds a function for PUT; see [`on`](Router::on).
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn put<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Put, path, function)
    }

    /// Adds a function for PATCH; see [`on`](Router::on).
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn patch<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Patch, path, function)
    }

    /// Adds a function for DELETE; see [`on`](Router::on).
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn delete<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Delete, path, function)
    }
}
