//! `Families`: writes families of metrics, with a row for each watched thing.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeLabelSet, LabelSetEncoder,
    MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use rotor_core::Histogram;

/// The labels of a row: names and values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Labels<'a>(pub(crate) &'a [(&'a str, &'a str)]);

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        for label in self.0 {
            use prometheus_client::encoding::EncodeLabel;
            label.encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

/// Writes families of metrics.
pub(crate) struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl<'a> Families<'a> {
    pub(crate) fn new(encoder: DescriptorEncoder<'a>) -> Families<'a> {
        Families { encoder }
    }

    /// Writes a family, whose rows are written by `rows`; writes nothing if there are no rows.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        rows: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        rows(&mut self.encoder.encode_descriptor(name, help, None, kind)?)
    }

    /// Writes counters. `name` is without `_total`.
    pub(crate) fn counters<'r, V: EncodeCounterValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'r>, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Counter, |family| {
            rows.into_iter().try_for_each(|(labels, value)| {
                family.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&value, None)
            })
        })
    }

    pub(crate) fn gauges<'r, V: EncodeGaugeValue>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'r>, V)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, |family| {
            rows.into_iter()
                .try_for_each(|(labels, value)| family.encode_family(&labels)?.encode_gauge(&value))
        })
    }

    /// Writes histograms of seconds.
    pub(crate) fn histograms<'r>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'r>, Histogram)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Histogram, |family| {
            rows.into_iter().try_for_each(|(labels, times)| {
                let bound = |bound| match bound {
                    Duration::MAX => f64::INFINITY,
                    bound => bound.as_secs_f64(),
                };
                let buckets: Vec<_> =
                    times.buckets().map(|(until, count)| (bound(until), count)).collect();
                let (sum, count) = (times.sum().as_secs_f64(), times.count());
                family
                    .encode_family(&labels)?
                    .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
            })
        })
    }
}
